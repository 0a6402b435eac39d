"""Bring one workspace's objects in the cluster to what its row wants, and its row to what the cluster shows.

Level-triggered and idempotent: it may run twice, come late, or be killed anywhere. Only one runs per workspace; a
second one returns at once. A workspace that is marked during a look goes to the end of the task queue: the busier the
workers are, the more changes one look answers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection

from clusters.connections import api_for
from clusters.errors import ClusterRefused, ClusterUnavailable
from quotas.models import Claim
from workspaces import enqueue, measures
from workspaces.cluster.observe import explain_trouble
from workspaces.models import NO_DEADLINE, Event, Phase, Workspace
from workspaces.state.live import RELATED, changing
from workspaces.state.runs import claim_of
from workspaces.state.story import add_event

from .bring_up import bring_up
from .take_down import keep_at_rest, take_down

log = logging.getLogger(__name__)


def reconcile(workspace_id: UUID) -> None:
    """Look at the workspace once. Enqueue it again, behind all others, if a mark came after the look began."""
    with alone(workspace_id) as mine:
        if not mine:
            return
        marks = pending_marks(workspace_id)
        if marks is None:
            return
        try:
            with measures.one_look():
                look(workspace_id)
        except ClusterUnavailable as error:
            log.warning("workspace %s: the cluster is away: %s", workspace_id, error.message)
            note_unavailable(workspace_id)
            return  # the mark stays: the periodic pass tries again
        except ClusterRefused as refusal:
            log.warning("workspace %s: the cluster refused: %s", workspace_id, refusal.message)
            note_refused(workspace_id, refusal)
            return
        settle(workspace_id, marks)
    if pending_marks(workspace_id) is not None:
        enqueue.again(workspace_id)


def look(workspace_id: UUID) -> None:
    """Run one pass: take an ending run down, bring an admitted claim up, else remove what is left of a run."""
    workspace = Workspace.objects.select_related(*RELATED, "secret").get(pk=workspace_id)
    cluster = workspace.pool.cluster
    if cluster.unreachable_since:  # only the watcher probes it; no worker waits for its answers
        raise ClusterUnavailable(cluster.unreachable_reason)
    api = api_for(cluster)
    if workspace.ending:
        take_down(workspace, api)
        return
    claim = claim_of(workspace, Claim.State.ADMITTED)
    if claim is not None:
        bring_up(workspace, claim, api)
    else:
        keep_at_rest(workspace, api)


def pending_marks(workspace_id: UUID) -> int | None:
    """Number of the last mark, or None if no mark is pending."""
    rows = Workspace.objects.filter(pk=workspace_id, dirty_since__isnull=False)
    return rows.values_list("dirty_marks", flat=True).first()


def settle(workspace_id: UUID, marks: int) -> None:
    """Clear the marks, unless another came meanwhile."""
    Workspace.objects.filter(pk=workspace_id, dirty_marks=marks).update(dirty_since=None)


def note_unavailable(workspace_id: UUID) -> None:
    with changing(workspace_id) as workspace:
        if workspace.phase in (Phase.STARTING, Phase.STOPPING, Phase.DELETING):
            workspace.message_code = "cluster_unavailable"
            workspace.message_data = {}


def note_refused(workspace_id: UUID, refusal: ClusterRefused) -> None:
    """Report a repeated refusal once. A conflict with another change (409, 422) passes by itself."""
    if refusal.status in (409, 422):
        return
    diagnosis = explain_trouble("admission", refusal.message).diagnosis
    with changing(workspace_id) as workspace:
        workspace.message_code, workspace.message_data = diagnosis.code, diagnosis.data
        if diagnosis.code not in workspace.troubles:
            workspace.troubles = {**workspace.troubles, diagnosis.code: NO_DEADLINE}
            add_event(workspace, diagnosis.code, level=Event.Level.WARNING, **diagnosis.data)


@contextmanager
def alone(workspace_id: UUID) -> Iterator[bool]:
    """Yield True if no other process has the workspace: a lock of the database session, gone if the process dies."""
    key = workspace_id.int % (1 << 62)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])

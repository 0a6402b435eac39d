"""Open the record of a run in the transaction of its end: ids and codes, no more. The rest is gathered soon after.

Workspaces and jobs call these for each new event (`state/live.py`, `changing.py`). A fault here ends nobody's
transaction: the end of a run is never kept back by its record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from jobs.models import Attempt, Job
from jobs.models import Event as JobEvent
from monitoring.models import PostMortem
from quotas.models import Claim
from workloads.pods.status import EVICTED
from workspaces.models import Event as WorkspaceEvent
from workspaces.models import Workspace
from workspaces.state import story

log = logging.getLogger(__name__)

Happened = PostMortem.Happened
UNPROVEN = "end_unproven"
# Reports of agents, and the last lines of a log, come a few seconds after an end.
FIRST_LOOK = timedelta(seconds=3)
OF_WORKSPACES = {
    "given_up": Happened.FAILED,
    "interrupted": Happened.INTERRUPTED,
    "container_restarted": Happened.RESTARTED,
    "sent_back": Happened.REJECTED,
    UNPROVEN: Happened.LOST,
}
WRITTEN = [
    "happened", "code", "data", "node", "verdict", "verdict_data", "ended_at", "due_at", "gathered_at", "facts",
    "lines", "gpus",
]  # fmt: skip


def on_workspace_event(event: WorkspaceEvent) -> None:
    if event.run is not None and (story.is_recorded(event) or event.code == UNPROVEN):
        _safely(partial(_of_workspace, event, event.run), event.run)


def on_job_event(event: JobEvent) -> None:
    if event.run is not None and event.level != event.Level.INFO:
        _safely(partial(_of_job, event, event.run), event.run)


def _safely(make: Callable[[], None], run: UUID) -> None:
    try:
        with transaction.atomic():
            make()
    except Exception:
        log.exception("no post-mortem of the run %s", run)


def _of_workspace(event: WorkspaceEvent, run: UUID) -> None:
    row, happened = event.workspace, OF_WORKSPACES[event.code]
    failure = (row.failure or {}) if event.code in ("given_up", "sent_back") else {}
    code, data = failure.get("code", event.code), failure.get("data", event.data)
    _open(
        row,
        run,
        holder_kind=Claim.Holder.WORKSPACE,
        node=row.node,
        happened=_or_evicted(happened, data),
        code=code,
        data=data,
        started_at=row.started_at,
        ended_at=event.at,
    )


def _of_job(event: JobEvent, run: UUID) -> None:
    attempt = Attempt.objects.select_related("part").filter(run=run).first()
    if attempt is None:
        return
    is_end = attempt.recorded_run == run and attempt.reason == event.code
    if not is_end and event.code != UNPROVEN:
        return
    row = event.job
    _open(
        row,
        run,
        holder_kind=Claim.Holder.JOB,
        part=attempt.part.index,
        attempt=attempt.number,
        node=attempt.node,
        happened=_of_attempt(attempt, event),
        code=event.code,
        data=event.data,
        started_at=attempt.started_at or attempt.created_at,
        ended_at=attempt.ended_at or event.at,
    )


def _of_attempt(attempt: Attempt, event: JobEvent) -> Happened:
    if event.code == UNPROVEN:
        return Happened.LOST
    if attempt.counted:
        return Happened.FAILED
    if event.code in ("ended_from_outside", "node_was_unwell", "end_confirmed"):
        return _or_evicted(Happened.INTERRUPTED, event.data)
    return Happened.REJECTED  # it never ran: its claim goes back to the queue


def _or_evicted(happened: Happened, data: dict[str, Any]) -> Happened:
    return Happened.EVICTED if data.get("reason") == EVICTED else happened


def _open(row: Workspace | Job, run: UUID, **facts: Any) -> None:
    """Write the record. Of a run that has one already, what happened last counts: it restarted, then it failed."""
    record = PostMortem(
        id=run,
        tenant_id=row.tenant_id,
        owner_id=row.owner_id,
        cluster_id=row.pool.cluster_id,
        holder_id=row.pk,
        name=row.name,
        image=row.image.slug,
        pool=row.pool.slug,
        due_at=timezone.now() + FIRST_LOOK,
        **facts,
    )
    PostMortem.objects.bulk_create(
        [record], update_conflicts=True, unique_fields=["id"], update_fields=WRITTEN
    )

"""Bring workspaces' objects in the cluster to what their rows want, and the rows to what the cluster shows.

Level-triggered and idempotent: a look may run twice, come late, or be killed anywhere. Looks are taken in batches,
whose rows and claims are read by one statement each; objects come from the mirror.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.mirror import Mirror
from quotas.models import Claim
from storage.mounts import mounting
from workloads.pods.troubles import explain_trouble
from workloads.pods.wanted import Shared
from workspaces import measures
from workspaces.cluster.look import read_anew
from workspaces.models import NO_DEADLINE, Event, Phase, Workspace
from workspaces.state.live import RELATED, changing
from workspaces.state.story import add_event

from .bring_up import bring_up
from .take_down import keep_at_rest, take_down

log = logging.getLogger(__name__)


def reconcile(
    ids: Collection[UUID], mirror: Mirror, anew: Collection[UUID] = ()
) -> Iterator[tuple[Workspace, bool]]:
    """Look at each workspace once. Yield each as it was read before, and whether its look came to its end.

    `anew`: those whose objects are read from the cluster, because nothing was heard of them for long.
    """
    rows = Workspace.objects.filter(pk__in=ids).select_related(*RELATED, "secret")
    workspaces = list(rows)
    runs = [row.run for row in workspaces if row.run is not None]
    claims = Claim.objects.filter(state=Claim.State.ADMITTED).in_bulk(runs)
    shared = Shared([row.pk for row in workspaces])
    for workspace in workspaces:
        claim = None if workspace.run is None else claims.get(workspace.run)
        yield workspace, look(workspace, claim, mirror, shared, anew=workspace.pk in anew)


def look(
    workspace: Workspace, claim: Claim | None, mirror: Mirror, shared: Shared, *, anew: bool = False
) -> bool:
    """Look at one workspace and answer its marks. Return False if the look has to be tried again.

    Raises the database's error if that is away; any other fault is this workspace's own.
    """
    try:
        with measures.one_look():
            refuse_away(workspace)
            if anew:
                read_anew(workspace, mounting.own(shared.mounts.get(workspace.pk, ())), mirror)
            _look(workspace, claim, mirror, shared)
    except ClusterUnavailable as error:
        log.warning("workspace %s: the cluster is away: %s", workspace.pk, error.message)
        note_unavailable(workspace.pk)
        return False  # the mark stays
    except ClusterRefused as refusal:
        log.warning("workspace %s: the cluster refused: %s", workspace.pk, refusal.message)
        note_refused(workspace.pk, refusal)
        return False
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("workspace %s: a fault", workspace.pk)
        return False
    settle(workspace)
    return True


def _look(workspace: Workspace, claim: Claim | None, mirror: Mirror, shared: Shared) -> None:
    """Take an ending run down, bring an admitted claim up, or remove what is left of a run."""
    if workspace.ending:
        take_down(workspace, mirror)
    elif claim is not None:
        bring_up(workspace, claim, mirror, shared)
    else:
        keep_at_rest(workspace, mirror)


def refuse_away(workspace: Workspace) -> None:
    cluster = workspace.pool.cluster
    if cluster.unreachable_since:  # only the watcher's probe calls it; nothing waits for its answers
        raise ClusterUnavailable(cluster.unreachable_reason)


def settle(workspace: Workspace) -> None:
    """Clear the marks, unless another came meanwhile."""
    if workspace.dirty_since is not None:
        rows = Workspace.objects.filter(pk=workspace.pk, dirty_marks=workspace.dirty_marks)
        rows.update(dirty_since=None)


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
            workspace.trouble_since = workspace.trouble_since or timezone.now()
            add_event(workspace, diagnosis.code, level=Event.Level.WARNING, **diagnosis.data)

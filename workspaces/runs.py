"""Runs: begin, admission and end. A run is one admitted claim of a workspace; the row follows the queue.

Lock order everywhere: the cluster's admission lock first, then the workspace's row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from math import ceil
from typing import Any

from django.utils import timezone

from quotas import admission
from quotas.models import Claim
from quotas.reclaim import ASKED_BACK

from . import tasks
from .live import announce, changing
from .models import Desired, Ending, Event, Phase, Step, Workspace
from .sizing import Size
from .story import tell


def begin(workspace: Workspace, claim: Claim, code: str) -> None:
    """Start the ten steps again under this claim. Inside `changing`, or before the row is first announced."""
    workspace.run = claim.pk
    workspace.phase = Phase.WAITING
    workspace.ending = ""
    workspace.failure = None
    workspace.troubles = {}
    workspace.ailments = []
    workspace.warned = False
    workspace.node = workspace.host = workspace.pod_uid = ""
    workspace.jupyter_port = workspace.ssh_port = None
    workspace.pod_ended = True
    workspace.container_restarts = 0
    workspace.started_at = workspace.ready_at = None
    if code != "restart_requested":  # time in the queue does not count
        stop_clock(workspace)
    tell(workspace, code, step=Step.REQUEST, name=workspace.name, size=Size.of(workspace).describe())
    advance(workspace, Step.ADMISSION)


def stop_clock(workspace: Workspace) -> None:
    """Count no lifetime."""
    workspace.stops_at = workspace.lifetime_due_at = None


def advance(workspace: Workspace, step: Step) -> None:
    """Make this the current step, and clear the troubles of the last one."""
    workspace.troubles = {}
    workspace.step = step
    workspace.step_since = timezone.now()
    workspace.message_code = f"doing_{step}"
    workspace.message_data = {}


def take_up_size(workspace: Workspace) -> None:
    """Apply the size that was asked for during a run. Inside `changing`, with no run on."""
    size = Size.of_next(workspace)
    workspace.next_size = None
    workspace.pool, workspace.flavor = size.pool, size.flavor
    for name, value in asdict(size.portion).items():
        setattr(workspace, name, value)
    workspace.cpu_millicores, workspace.memory_mib = size.cpu_millicores, size.memory_mib


def on_admitted(*, claim: Claim, **_: object) -> None:
    """Complete the second step: the queue admitted the claim."""
    if claim.holder_kind != Claim.Holder.WORKSPACE:
        return
    with changing(claim.holder_id) as workspace:
        if workspace.run != claim.pk:
            begin(workspace, claim, "restart_requested")
        if workspace.ending:
            return
        workspace.phase = Phase.STARTING
        workspace.started_at = claim.admitted_at
        tell(workspace, "admitted", step=Step.ADMISSION, pool=claim.pool.name, node=claim.node)
        advance(workspace, Step.DISK)
    tasks.mark([claim.holder_id])


def on_waits(*, claim: Claim, **_: object) -> None:
    """Announce a new reason or place in the queue: pages make the words from the claim."""
    if claim.holder_kind == Claim.Holder.WORKSPACE:
        for workspace in Workspace.objects.filter(pk=claim.holder_id, run=claim.pk):
            announce(workspace)


def on_standing_changed(*, claims: Iterable[Claim], **_: object) -> None:
    """Announce new places or forecasts: pages read them from the claims."""
    runs = {claim.pk for claim in claims if claim.holder_kind == Claim.Holder.WORKSPACE}
    for workspace in Workspace.objects.filter(run__in=runs).order_by("pk"):
        announce(workspace)


def on_to_stop(*, claim: Claim, code: str, **_: object) -> None:
    """End a run that must give its units back. Files stay; after a preemption, it waits in front of the queue."""
    if claim.holder_kind != Claim.Holder.WORKSPACE:
        return
    with changing(claim.holder_id) as workspace:
        if workspace.run != claim.pk or workspace.ending:
            return
        if code == ASKED_BACK:
            tell(workspace, "given_back", level=Event.Level.WARNING)
            end(workspace, Ending.RECLAIM)
        else:
            tell(workspace, f"stopped_by_{code}", level=Event.Level.WARNING)
            stop(workspace)
    tasks.mark([claim.holder_id])


def on_reclaimed(*, claim: Claim, **_: object) -> None:
    """Report that the run is preempted, and goes on until `reclaim_at`."""
    if claim.holder_kind == Claim.Holder.WORKSPACE and claim.reclaim_at is not None:
        minutes = ceil((claim.reclaim_at - timezone.now()).total_seconds() / 60)
        at = claim.reclaim_at.isoformat()
        _tell_of_run(claim, f"asked_back_{claim.reclaim_code}", Event.Level.WARNING, minutes=minutes, at=at)


def on_spared(*, claim: Claim, **_: object) -> None:
    """Report a cancelled preemption."""
    if claim.holder_kind == Claim.Holder.WORKSPACE:
        _tell_of_run(claim, "spared", Event.Level.INFO)


def on_ends_by_budget(*, claim: Claim, **_: object) -> None:
    """Report that GPU-hours are spent and the run goes on until `budget_ends_at`; or that there are some again."""
    if claim.holder_kind != Claim.Holder.WORKSPACE:
        return
    if claim.budget_ends_at is None:
        _tell_of_run(claim, "goes_on_by_budget", Event.Level.INFO)
    else:
        at = claim.budget_ends_at.isoformat()
        minutes = max(0, ceil((claim.budget_ends_at - timezone.now()).total_seconds() / 60))
        _tell_of_run(claim, "ends_by_budget", Event.Level.WARNING, minutes=minutes, at=at)


def _tell_of_run(claim: Claim, code: str, level: Event.Level, **data: Any) -> None:
    with changing(claim.holder_id) as workspace:
        if workspace.run == claim.pk and (not workspace.ending or keeps_units(workspace)):
            tell(workspace, code, level=level, **data)


def keeps_units(workspace: Workspace) -> bool:
    """Return True if the next run takes over an ending run's units: reports on its claim concern the next run too."""
    return workspace.ending == Ending.INTERRUPTED or (
        workspace.ending == Ending.RESTART and workspace.next_size is None
    )


def on_released(*, claim: Claim, **_: object) -> None:
    """Accept an end that nobody had seen but an admin confirmed: the run can be cleared away."""
    if claim.holder_kind == Claim.Holder.WORKSPACE:
        unproven = Workspace.objects.filter(run=claim.pk, pod_ended=False)
        if unproven.update(pod_ended=True):
            tasks.mark([claim.holder_id])


def claim_of(workspace: Workspace, *states: Claim.State) -> Claim | None:
    """Return the claim of the current run if it is in one of these states, else None."""
    if workspace.run is None:
        return None
    return Claim.objects.filter(pk=workspace.run, state__in=states).first()


def withdraw(workspace: Workspace) -> bool:
    """Leave the queue before anything was made in the cluster. Return False if the claim was admitted meanwhile.

    Inside `changing`, under the cluster's admission lock.
    """
    waiting = claim_of(workspace, Claim.State.WAITING)
    if waiting is None or not admission.release(waiting.pk, "withdrawn"):
        return False
    workspace.phase = Phase.STOPPED
    workspace.step_since = timezone.now()
    workspace.message_code, workspace.message_data = "stopped", {}
    take_up_size(workspace)
    tell(workspace, "stopped")
    return True


PHASE_WHILE = {
    Ending.STOP: Phase.STOPPING,
    Ending.RESTART: Phase.STOPPING,
    Ending.INTERRUPTED: Phase.STARTING,
    Ending.REQUEUE: Phase.WAITING,
    Ending.RECLAIM: Phase.STOPPING,
    Ending.FAILED: Phase.FAILED,
    Ending.DELETE: Phase.DELETING,
}
MESSAGE_WHILE = {
    Ending.STOP: "stopping",
    Ending.RESTART: "restarting",
    Ending.INTERRUPTED: "restarting",
    Ending.REQUEUE: "sent_back",
    Ending.RECLAIM: "giving_back",
    Ending.DELETE: "deleting",
}


def stop(workspace: Workspace) -> bool:
    """Request a stop; a waiting claim leaves the queue at once. Return True if a run is to be taken down.

    Inside `changing`, under the cluster's admission lock.
    """
    workspace.desired = Desired.STOPPED
    if workspace.phase == Phase.WAITING and not workspace.ending and withdraw(workspace):
        return False
    if workspace.ending != Ending.FAILED:
        end(workspace, Ending.STOP)
    return True


def end(workspace: Workspace, ending: Ending) -> None:
    """Begin to take the current run down. What follows is decided when its end is proven. Inside `changing`."""
    workspace.ending = ending
    if ending != Ending.INTERRUPTED:
        stop_clock(workspace)
    workspace.phase = PHASE_WHILE[ending]
    workspace.step_since = timezone.now()
    workspace.host = ""
    workspace.jupyter_port = workspace.ssh_port = None
    workspace.troubles = {}
    workspace.ailments = []
    _describe(workspace, ending)


def describe_ending(workspace: Workspace) -> None:
    """Replace the message of an unreachable cluster by the current action, once the cluster answers again."""
    with changing(workspace.pk) as row:
        if row.ending and (row.message_code == "cluster_unavailable" or row.message_code in row.troubles):
            _describe(row, Ending(row.ending))


def _describe(workspace: Workspace, ending: Ending) -> None:
    if ending in MESSAGE_WHILE:
        workspace.message_code = MESSAGE_WHILE[ending]
        workspace.message_data = {}

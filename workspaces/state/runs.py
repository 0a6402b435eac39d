"""Runs: begin, admission and end. A run is one admitted claim of a workspace; the row follows the queue."""

from __future__ import annotations

from django.utils import timezone

from quotas import admission
from quotas.models import Claim
from storage.mounts import mounting
from workloads import longest
from workloads.sizes.sizing import Size
from workspaces.models import Ending, Phase, Step, Workspace

from . import settings
from .live import changing
from .story import add_event
from .transitions import Move, advance_step, end_by, move


def begin(workspace: Workspace, claim: Claim, code: str) -> None:
    """Start the ten steps again under this claim. Inside `changing`, or before the row is first announced."""
    workspace.run = claim.pk
    move(workspace, Move.QUEUE)
    _forget_observed(workspace)
    workspace.failure = workspace.former_size = None
    workspace.node = workspace.pod_uid = ""
    workspace.pod_ended = True
    workspace.container_restarts = 0
    workspace.started_at = workspace.ready_at = None
    if code != "restart_requested":  # time in the queue does not count
        stop_clock(workspace)
    add_event(workspace, code, step=Step.REQUEST, name=workspace.name, size=Size.of(workspace).describe())
    advance(workspace)


def stop_clock(workspace: Workspace) -> None:
    """Count no lifetime."""
    workspace.stops_at = workspace.lifetime_due_at = None


def advance(workspace: Workspace) -> None:
    """Begin the next step, and clear the troubles of the last one."""
    advance_step(workspace)
    forget_troubles(workspace)
    workspace.step_since = timezone.now()
    workspace.message_code, workspace.message_data = f"doing_{workspace.step}", {}


def take_up_changes(workspace: Workspace) -> None:
    """Apply what was asked for during a run: size, mounts, settings. Inside `changing`, with no run on."""
    mounting.take_up(workspace.pk)
    take_up_size(workspace)
    settings.take_up(workspace)


def take_up_size(workspace: Workspace) -> None:
    size = next_size(workspace)
    workspace.next_size = None
    for name, value in size.fields.items():
        setattr(workspace, name, value)


def fit_lifetime(row: Workspace) -> None:
    """Cut the lifetime of the next run to what the tenant may have now. Inside `changing`."""
    minutes = longest.at_most(row.tenant, row.max_runtime_minutes)
    if minutes is not None and minutes != row.max_runtime_minutes:
        row.max_runtime_minutes = minutes
        add_event(row, "lifetime_capped", minutes=minutes)


def next_size(workspace: Workspace) -> Size:
    """Return the size from the next start on."""
    return (workspace.next_size and Size.kept(workspace.next_size)) or Size.of(workspace)


def keeps_units(workspace: Workspace) -> bool:
    """Return True if the next run takes over an ending run's units: reports on its claim concern the next run too."""
    return workspace.ending == Ending.INTERRUPTED or (
        workspace.ending == Ending.RESTART and not is_changing(workspace)
    )


def is_changing(workspace: Workspace) -> bool:
    """Return True if the next run is to have another size or other mounts, for which it needs a claim of its own."""
    return workspace.next_size is not None or mounting.is_changing(workspace.pk)


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
    move(workspace, Move.WITHDRAW)
    workspace.step_since = timezone.now()
    workspace.message_code, workspace.message_data = "stopped", {}
    take_up_size(workspace)
    settings.take_up(workspace)
    add_event(workspace, "stopped")
    return True


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
    move(workspace, Move.WANT_STOPPED)
    if workspace.phase == Phase.WAITING and not workspace.ending and withdraw(workspace):
        return False
    if workspace.ending != Ending.FAILED:
        end(workspace, Ending.STOP)
    return True


def end(workspace: Workspace, ending: Ending) -> None:
    """Begin to take the current run down. What follows is decided when its end is proven. Inside `changing`."""
    move(workspace, end_by(ending))
    if ending != Ending.INTERRUPTED:
        stop_clock(workspace)
    workspace.step_since = timezone.now()
    _forget_observed(workspace)
    _describe(workspace, ending)


def _forget_observed(workspace: Workspace) -> None:
    """Clear address and problems: they are of a run that has ended or is about to."""
    workspace.host = workspace.jupyter_host = ""
    workspace.jupyter_port = workspace.ssh_port = None
    forget_troubles(workspace)
    workspace.conditions = []
    workspace.idle_since = workspace.idle_stops_at = workspace.idle_warned_at = None
    workspace.idle_busy_by = []


def forget_troubles(workspace: Workspace) -> None:
    workspace.troubles = {}
    workspace.trouble_since = workspace.gives_up_at = None


def describe_ending(workspace: Workspace) -> None:
    """Replace the message of an unreachable cluster by the current action, once the cluster answers again."""
    with changing(workspace.pk) as row:
        if row.ending and (row.message_code == "cluster_unavailable" or row.message_code in row.troubles):
            _describe(row, Ending(row.ending))


def _describe(workspace: Workspace, ending: Ending) -> None:
    if ending in MESSAGE_WHILE:
        workspace.message_code, workspace.message_data = MESSAGE_WHILE[ending], {}

"""Take a run down: delete what it made, see its end, then give its units back, exactly once."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from accounts.errors import Refusal
from clusters.mirror import Mirror
from quotas import admission
from quotas.models import Claim
from storage import connections
from storage.mounts import homes, mounting
from workloads import failures
from workspaces.cluster.look import may_have_a_pod, pods_of
from workspaces.cluster.proof import delete_pod, note_pods
from workspaces.launch.keys import forget_secrets
from workspaces.launch.launch import claim_for
from workspaces.models import Desired, Ending, Event, Workspace
from workspaces.state import runs, settings
from workspaces.state.live import changing
from workspaces.state.story import add_event
from workspaces.state.transitions import Move, move


def take_down(workspace: Workspace, mirror: Mirror) -> None:
    """Run one pass: delete, release ended pods, and finish once the end is proven."""
    pods = pods_of(workspace, mirror)
    if workspace.message_code == "cluster_unavailable" or workspace.message_code in workspace.troubles:
        runs.describe_ending(workspace)
    noted = note_pods(workspace, pods)
    ended = [delete_pod(pod, mirror) for pod in pods]
    if not all(ended):
        return
    if (not noted or (not pods and not workspace.pod_ended)) and unproven(workspace):
        report_unproven(workspace)
        return
    if not pods and not workspace.pod_uid and may_have_a_pod(workspace, mirror):
        return  # the watch has not reported it yet
    if workspace.ending == Ending.DELETE:
        delete_ways_in(workspace, mirror)
    free_address(workspace, mirror)
    finish(workspace)


def keep_at_rest(workspace: Workspace, mirror: Mirror) -> None:
    """Delete late objects of a workspace without a run: what came late must not run without a claim."""
    for pod in pods_of(workspace, mirror):
        delete_pod(pod, mirror)
    if workspace.deleted_at is not None:
        delete_ways_in(workspace, mirror)
    free_address(workspace, mirror)


def free_address(workspace: Workspace, mirror: Mirror) -> None:
    """Delete the Service of a stopped workspace where the cluster keeps no addresses."""
    if workspace.desired == Desired.STOPPED and workspace.pool.cluster.frees_addresses:
        delete_service(workspace, mirror)


def delete_ways_in(workspace: Workspace, mirror: Mirror) -> None:
    """Delete Service and Secret of a deleted workspace. Nobody watches Secrets, so the pass that proves the end deletes
    it unseen."""
    namespace, name = workspace.tenant.namespace, workspace.object_name
    if mirror.get("Service", namespace, name) is not None or not workspace.deleted_at:
        mirror.delete("Secret", namespace, name)
    delete_service(workspace, mirror)


def delete_service(workspace: Workspace, mirror: Mirror) -> None:
    namespace, name = workspace.tenant.namespace, workspace.object_name
    service = mirror.get("Service", namespace, name)
    if service is not None and not service["metadata"].get("deletionTimestamp"):
        mirror.delete("Service", namespace, name, uid=service["metadata"]["uid"])


def unproven(workspace: Workspace) -> bool:
    """Return True if a claim is still held whose pod vanished without having been seen to end."""
    held = runs.claim_of(workspace, Claim.State.ADMITTED) is not None
    return held and Workspace.objects.filter(pk=workspace.pk, pod_ended=False).exists()


def report_unproven(workspace: Workspace) -> None:
    """Report once that the end is unproven. The process may still run, so the units stay reserved."""
    with transaction.atomic():
        admission.lock(workspace.pool.cluster_id)
        new = workspace.run is not None and admission.flag_unproven_end(workspace.run)
        with changing(workspace.pk) as row:
            row.message_code, row.message_data = "end_unproven", {}
            if new:
                add_event(row, "end_unproven", level=Event.Level.ERROR)


def finish(workspace: Workspace) -> None:
    """Decide what comes next, once the end is proven: it depends on why the run ended and what is wanted now."""
    with transaction.atomic():
        admission.lock(workspace.pool.cluster_id)
        claim = runs.claim_of(workspace, Claim.State.WAITING, Claim.State.ADMITTED)
        with changing(workspace.pk) as row:
            if ending_key(row) != ending_key(workspace):
                return  # something else is wanted since this look began: look again
            wanted, keeps_units = row.desired, runs.keeps_units(row)
            ending = Ending(row.ending)
            take_up_settings(row, ending)
            move(row, Move.PROVE_END)
            gives_back = ending == Ending.RECLAIM or (keeps_units and claim is not None and is_due(claim))
            if wanted == Desired.DELETED:
                _become_deleted(row)
            elif wanted == Desired.STOPPED:
                _become_stopped(row, ending)
        if wanted != Desired.RUNNING:
            _release(claim, ending)
        elif ending == Ending.REQUEUE and claim is not None:
            why = workspace.failure or {"code": "sent_back", "data": {}}
            _begin(workspace, admission.send_back(claim, why["code"], why["data"]), "requested")
        elif gives_back and claim is not None:
            _begin(workspace, admission.give_back(claim), "waits_again")
        elif keeps_units and claim is not None:
            admission.renew(claim)  # its signal begins the next run
        else:
            _release(claim, ending)
            _ask_again(workspace)


def take_up_settings(row: Workspace, ending: Ending) -> None:
    """Take changed settings up with the next start that follows a person's or the queue's decision; what only was
    interrupted comes back as it was. The former image is kept until a run with the new one was ready."""
    if ending == Ending.INTERRUPTED:
        return
    if row.ready_at is not None and ending in (Ending.STOP, Ending.RESTART):
        row.previous_image = ""
    settings.take_up(row)


def is_due(claim: Claim) -> bool:
    """Return True if the claim is preempted and its time has come."""
    return claim.reclaim_at is not None and claim.reclaim_at <= timezone.now()


def ending_key(workspace: Workspace) -> tuple[object, ...]:
    """Run, and reason to take it down. If they changed during a look, another look is needed."""
    return workspace.run, workspace.ending, workspace.delete_disk


def _release(claim: Claim | None, ending: Ending) -> None:
    if claim is not None:
        admission.release(claim.pk, str(ending))


def _become_deleted(row: Workspace) -> None:
    code = "deleted_with_files" if row.delete_disk else "deleted"
    move(row, Move.BE_GONE)
    row.deleted_at = timezone.now()
    homes.let_go(row.pk, with_data=row.delete_disk or not row.events.filter(code="admitted").exists())
    row.next_size = None
    forget_secrets(row)
    connections.forget(row.pk)
    row.message_code, row.message_data = code, {}
    add_event(row, code)


def _become_stopped(row: Workspace, ending: Ending) -> None:
    row.ready_at = row.started_at = None
    row.node = ""
    runs.take_up_changes(row)
    if ending == Ending.FAILED:
        return
    move(row, Move.REST)
    row.step_since = timezone.now()
    row.message_code, row.message_data = "stopped", {}
    add_event(row, "stopped")


def _ask_again(workspace: Workspace) -> None:
    """Put a new claim into the queue. The workspace fails if limits or nodes are too small for it by now."""
    with changing(workspace.pk) as row:
        runs.take_up_changes(row)
        runs.fit_lifetime(row)
        try:
            runs.begin(row, claim_for(row), "requested")
        except Refusal:
            move(row, Move.REFUSE)
            row.message_code, row.message_data = "refused_again", {}
            row.failure = failures.failure("refused_again", {}, timezone.now())
            add_event(row, "refused_again", level=Event.Level.ERROR)


def _begin(workspace: Workspace, successor: Claim, code: str) -> None:
    with changing(workspace.pk) as row:
        mounting.take_up(row.pk)
        runs.begin(row, successor, code)

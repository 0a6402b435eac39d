"""Start, stop, restart, delete: each writes the desired state in one transaction; reconcile carries it out.

The functions return True if anything changed: asking twice is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.announcements.showing import refuse_in_maintenance
from accounts.errors import Conflict, Refusal
from accounts.live import publish_to_all
from accounts.trail import audit
from clusters.isolation.deciding import refuse_unknown
from quotas import admission
from quotas.allowed import storage
from storage.mounts import homes
from workloads import images
from workspaces import enqueue
from workspaces.access import require_manage, require_own
from workspaces.launch.keys import take_host_key
from workspaces.launch.launch import claim_for
from workspaces.models import Desired, Ending, Phase, Workspace
from workspaces.state import by_hand, runs, settings
from workspaces.state.live import changing
from workspaces.state.story import add_event
from workspaces.state.transitions import Move, move

# Verbs that may make a home or a disk. The lock of the tenant's limit comes before those of workspaces.
MAKES_VOLUMES = ("start", "change")


def start(actor: Actor, workspace: Workspace) -> bool:
    """Request a run: put a claim into the queue now, or as soon as the ending run has ended."""
    with allowed(actor, workspace, "start"):
        require_own(actor, workspace)
        refuse_in_maintenance(actor)
    with audited_change(actor, workspace, "start") as row:
        require_own(actor, workspace)  # they may have been removed from the tenant meanwhile
        refuse_deleted(row)
        if row.desired == Desired.RUNNING:
            return False
        begin(row, "requested")
        by_hand.note(row)
    return True


def begin(row: Workspace, code: str) -> None:
    """Want it to run, and put its claim into the queue, reported by this event. Inside `changing`."""
    refuse_unknown(row.pool.cluster)  # now: where a run is still ending, the claim is made only after its end
    images.refuse_not_allowed(settings.coming_image(row))
    take_host_key(row)
    move(row, Move.WANT_RUNNING)
    if not row.ending:
        runs.fit_lifetime(row)
        homes.renew(row.owner, row.tenant, row.pool.cluster, row.pk)
        runs.begin(row, claim_for(row), code)


def stop(actor: Actor, workspace: Workspace) -> bool:
    """Request a stop; files stay. A waiting workspace leaves the queue at once."""
    with allowed(actor, workspace, "stop"):
        require_manage(actor, workspace)
    with audited_change(actor, workspace, "stop") as row:
        refuse_deleted(row)
        if row.desired == Desired.STOPPED:
            return False
        add_event(row, "stop_requested", by=actor.user.get_username())
        has_run = runs.stop(row)
        by_hand.note(row)
    if has_run:
        enqueue.reconcile([workspace.pk], urgent=True)
    return True


def restart(actor: Actor, workspace: Workspace) -> bool:
    """End the current run and begin the next, on the same units unless the size was changed."""
    if workspace.desired == Desired.STOPPED:
        return start(actor, workspace)
    with allowed(actor, workspace, "restart"):
        require_own(actor, workspace)
        images.refuse_not_allowed(settings.coming_image(workspace))
        if runs.is_changing(workspace):  # it needs a new claim: do not end this run for a refusal
            refuse_unknown(workspace.pool.cluster)
    return restart_run(actor, workspace, "restarting")


def restart_run(actor: Actor, workspace: Workspace, code: str, **event: Any) -> bool:
    """End the current run and begin the next, reported by this event."""
    with audited_change(actor, workspace, "restart") as row:
        refuse_deleted(row)
        if row.desired != Desired.RUNNING or row.ending or row.phase == Phase.WAITING:
            return False
        take_host_key(row)
        add_event(row, code, **event)
        runs.end(row, Ending.RESTART)
    enqueue.reconcile([workspace.pk], urgent=True)
    return True


def delete(actor: Actor, workspace: Workspace, *, delete_disk: bool = False) -> bool:
    """Request deletion. Its volumes stay; `delete_disk` takes those along that were made for it alone, and may be
    added until the end."""
    with allowed(actor, workspace, "delete"):
        require_manage(actor, workspace)
    with audited_change(actor, workspace, "delete", {"delete_disk": delete_disk}) as row:
        if row.desired == Desired.DELETED and (row.deleted_at or row.delete_disk >= delete_disk):
            return False
        move(row, Move.WANT_DELETED)
        row.delete_disk = delete_disk
        add_event(row, "delete_requested", by=actor.user.get_username())
        runs.end(row, Ending.DELETE)
        people = row.shares.values_list("user_id", flat=True)
        publish_to_all([f"user.{pk}" for pk in people], {"type": "access.changed"})  # shares end with it
    enqueue.reconcile([workspace.pk])
    return True


@contextmanager
def allowed(actor: Actor, workspace: Workspace, verb: str) -> Iterator[None]:
    """Record a refusal in the audit trail and raise it again."""
    try:
        yield
    except Refusal as refusal:
        audit.record(
            actor,
            f"workspace.{verb}",
            target=workspace,
            tenant=workspace.tenant,
            outcome="refused",
            data={"code": refusal.code},
        )
        raise


@contextmanager
def audited_change(
    actor: Actor, workspace: Workspace, verb: str, data: dict[str, object] | None = None
) -> Iterator[Workspace]:
    """Yield the row, locked in the right order; a change is audited in the same transaction."""
    with transaction.atomic():
        admission.lock(workspace.pool.cluster_id)
        if verb in MAKES_VOLUMES:
            storage.lock(workspace.tenant)
        with changing(workspace.pk) as row:
            before = row.last_event, row.desired, row.notify
            yield row
            changed = (row.last_event, row.desired, row.notify) != before
        if changed:
            audit.record(actor, f"workspace.{verb}", target=row, tenant=row.tenant, data=data)


def refuse_deleted(row: Workspace) -> None:
    if row.desired == Desired.DELETED:
        raise Conflict("being_deleted", _("This workspace is being deleted."), _("Launch a new one."))

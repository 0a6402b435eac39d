"""Start, stop, restart, delete: each says what is wanted, in one transaction; reconcile does it.

Every function returns whether anything changed: asking twice is no error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.access import Actor
from accounts.errors import Conflict, Invalid, Refusal
from quotas import admission

from . import runs, tasks
from .access import require_manage, require_own
from .launch import check_name, claim_for, name_taken
from .live import changing
from .models import Desired, Ending, Phase, Workspace
from .story import tell


def start(actor: Actor, workspace: Workspace) -> bool:
    """Wanted running: into the queue now, or as soon as the run that is ending has ended."""
    with _allowed(actor, workspace, "start"):
        require_own(actor, workspace)
    with _changing(actor, workspace, "start") as row:
        _refuse_deleted(row)
        if row.desired == Desired.RUNNING:
            return False
        row.desired = Desired.RUNNING
        if not row.ending:
            runs.begin(row, claim_for(row), "requested")
    return True


def stop(actor: Actor, workspace: Workspace) -> bool:
    """Wanted stopped; files stay. What only waits is out of the queue at once."""
    with _allowed(actor, workspace, "stop"):
        require_manage(actor, workspace)
    with _changing(actor, workspace, "stop") as row:
        _refuse_deleted(row)
        if row.desired == Desired.STOPPED:
            return False
        row.desired = Desired.STOPPED
        tell(row, "stop_requested", by=actor.user.get_username())
        if row.phase == Phase.WAITING and not row.ending and runs.withdraw(row):
            return True
        if row.ending != Ending.FAILED:
            runs.end(row, Ending.STOP)
    tasks.mark([workspace.pk])
    return True


def restart(actor: Actor, workspace: Workspace) -> bool:
    """End the current run and begin the next on the same units; a stopped one just starts."""
    if workspace.desired == Desired.STOPPED:
        return start(actor, workspace)
    with _allowed(actor, workspace, "restart"):
        require_own(actor, workspace)
    with _changing(actor, workspace, "restart") as row:
        _refuse_deleted(row)
        if row.desired != Desired.RUNNING or row.ending or row.phase == Phase.WAITING:
            return False
        tell(row, "restarting")
        runs.end(row, Ending.RESTART)
    tasks.mark([workspace.pk])
    return True


def delete(actor: Actor, workspace: Workspace, *, delete_disk: bool = False) -> bool:
    """Wanted gone. Home and disk stay in the cluster unless `delete_disk`, which may be added until it is done."""
    with _allowed(actor, workspace, "delete"):
        require_manage(actor, workspace)
    with _changing(actor, workspace, "delete", {"delete_disk": delete_disk}) as row:
        if row.desired == Desired.DELETED and (row.deleted_at or row.delete_disk >= delete_disk):
            return False
        row.desired = Desired.DELETED
        row.delete_disk = delete_disk
        tell(row, "delete_requested", by=actor.user.get_username())
        runs.end(row, Ending.DELETE)
    tasks.mark([workspace.pk])
    return True


def rename(actor: Actor, workspace: Workspace, name: str) -> bool:
    """Another name for people; its objects in the cluster are named by id and stay."""
    with _allowed(actor, workspace, "rename"):
        require_own(actor, workspace)
        if faults := check_name(name):
            raise Invalid("invalid", _("It cannot have this name."), _("Choose another one."), fields=faults)
    try:
        with _changing(actor, workspace, "rename", {"name": name}) as row:
            _refuse_deleted(row)
            if row.name == name:
                return False
            tell(row, "renamed", old=row.name, new=name)
            row.name = name
    except IntegrityError as error:
        if "one_workspace_of_a_name" not in str(error):
            raise
        raise name_taken(name) from None
    return True


@contextmanager
def _allowed(actor: Actor, workspace: Workspace, verb: str) -> Iterator[None]:
    """Who may not is refused, and that is on record."""
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
def _changing(
    actor: Actor, workspace: Workspace, verb: str, data: dict[str, object] | None = None
) -> Iterator[Workspace]:
    """The row, locked in the right order; the change is audited with it."""
    with transaction.atomic():
        admission.lock(workspace.pool.cluster_id)
        with changing(workspace.pk) as row:
            before = row.last_event, row.desired
            yield row
            changed = (row.last_event, row.desired) != before
        if changed:
            audit.record(actor, f"workspace.{verb}", target=row, tenant=row.tenant, data=data)


def _refuse_deleted(row: Workspace) -> None:
    if row.desired == Desired.DELETED:
        raise Conflict("being_deleted", _("This workspace is being deleted."), _("Launch a new one."))

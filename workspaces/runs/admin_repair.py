"""Repairs that an admin makes if a workspace's objects differ from its row. Nothing here happens by itself.

The run goes on: objects made again are applied, and the pod follows a changed template only at its next start.
"""

from __future__ import annotations

from itertools import chain, count
from typing import Any

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from quotas.models import Claim
from workspaces.cluster import manifests
from workspaces.cluster.wanted import Shared, wanted_of
from workspaces.launch.keys import make_secret
from workspaces.models import Event, Workspace
from workspaces.state.live import changing
from workspaces.state.runs import claim_of
from workspaces.state.story import add_event
from workspaces.state.transitions import Move, move

from .lifecycle import audited_change, restart_run


def wanted_object(workspace: Workspace, kind: str) -> dict[str, Any]:
    """Return the Service or Secret as the current run wants it. Raise Conflict without a run."""
    claim = claim_of(workspace, Claim.State.ADMITTED)
    if claim is None:
        raise Conflict(
            "not_running",
            _("It is not running now, so nothing was created for it."),
            _("Its next start creates everything again."),
        )
    wanted = wanted_of(workspace, claim, Shared())
    return {"Service": manifests.service, "Secret": manifests.secret}[kind](wanted)


def restart(actor: Actor, workspace: Workspace) -> bool:
    """End the run and begin the next on the same units: a changed pod cannot be repaired while it runs."""
    actor.require(Scope.ADMIN)
    by = actor.user.get_username()
    return restart_run(actor, workspace, "restart_by_admin", level=Event.Level.WARNING, by=by)


def add_admin_event(workspace: Workspace, code: str, **data: Any) -> None:
    """Add an event: who did what to the workspace's objects."""
    with changing(workspace.pk) as row:
        add_event(row, code, **data)


def restore_deleted(actor: Actor, workspace: Workspace) -> bool:
    """Restore a deleted workspace whose volumes were kept: stopped, and without its environment and secrets.

    Return False if it is not deleted.
    """
    actor.require(Scope.ADMIN)
    with audited_change(actor, workspace, "hand_back") as row:
        if row.deleted_at is None:
            return False
        if not row.volumes or row.delete_disk:
            raise Conflict(
                "nothing_kept", _("Nothing of it is left."), _("Its owner can launch a new workspace.")
            )
        row.name = free_name(row)
        row.deleted_at = None
        make_secret(row, {})
        move(row, Move.RESTORE)
        row.message_code, row.message_data = "handed_back", {"by": actor.user.get_username()}
        add_event(row, "handed_back", by=actor.user.get_username())
    return True


def free_name(row: Workspace) -> str:
    """Return its own name, with a number if its owner has another workspace of that name by now."""
    others = Workspace.objects.filter(tenant=row.tenant, owner=row.owner, deleted_at__isnull=True)
    taken = set(others.values_list("name", flat=True))
    numbered = (f"{row.name[:58]}-{number}" for number in count(2))
    return next(name for name in chain([row.name], numbered) if name not in taken)


def forget_volume(workspace: Workspace, claim: str, volume: str) -> bool:
    """Forget a volume whose data is about to be deleted. Return False if it is no deleted workspace's volume."""
    with changing(workspace.pk) as row:
        if row.deleted_at is None or row.volumes.get(claim) != volume:
            return False
        row.volumes = {name: kept for name, kept in row.volumes.items() if name != claim}
        return True


def remember_volume(workspace: Workspace, claim: str, volume: str) -> None:
    """Record a volume again that was not deleted after all."""
    with changing(workspace.pk) as row:
        row.volumes = {**row.volumes, claim: volume}

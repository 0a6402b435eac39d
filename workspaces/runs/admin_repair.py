"""Repairs that an admin makes if a workspace's objects differ from its row. Nothing here happens by itself.

The run goes on: objects made again are applied, and the pod follows a changed template only at its next start.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from quotas.models import Claim
from workloads.pods.wanted import Shared
from workspaces.cluster import manifests
from workspaces.cluster.wanted import wanted_of
from workspaces.models import Event, Workspace
from workspaces.state.live import changing
from workspaces.state.runs import claim_of
from workspaces.state.story import add_event

from .lifecycle import restart_run


def wanted_object(workspace: Workspace, kind: str) -> dict[str, Any]:
    """Return the Service or Secret as the current run wants it. Raise Conflict without a run."""
    claim = claim_of(workspace, Claim.State.ADMITTED)
    if claim is None:
        raise Conflict(
            "not_running",
            _("It is not running now, so nothing was created for it."),
            _("Its next start creates everything again."),
        )
    wanted = wanted_of(workspace, claim, Shared([workspace.pk]))
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

"""Jupyter's token for a script of the workspace's owner."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.locks import locked
from accounts.trail import audit
from workspaces import access
from workspaces.models import Workspace, WorkspaceSecret
from workspaces.state import jupyter

from . import hosts


def hand_out(actor: Actor, workspace: Workspace, host: str) -> tuple[str, str, datetime | None]:
    """Return Jupyter's address, its token, and when that ends at the latest (None: with the run).

    `host`: by which the portal was reached. The token is replaced when the API token that asked for it ends.
    """
    access.require_own(actor, workspace)
    address = hosts.jupyter_of(workspace)
    if not address:
        raise Conflict(
            "not_ready",
            _("JupyterLab of this workspace cannot be opened at the moment."),
            _("Wait until the phase is “ready”. An image without Jupyter never offers it."),
        )
    if hosts.is_on():
        address = f"{hosts.origin_of(hosts.Site(workspace.pk), host)}/"
    with transaction.atomic():
        secret = locked(WorkspaceSecret.objects.all()).get(workspace=workspace)
        if actor.token is not None and str(actor.token.pk) not in secret.handed_to:
            secret.handed_to.append(str(actor.token.pk))
            secret.save(update_fields=["handed_to"])
        audit.record(actor, "workspace.jupyter", target=workspace, tenant=workspace.tenant)
    workspace.secret = secret
    ends = [workspace.stops_at, actor.token.expires_at if actor.token else None]
    return address, jupyter.token(workspace), min((end for end in ends if end), default=None)

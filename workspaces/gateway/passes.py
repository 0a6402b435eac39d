"""Tickets and passes of the gateway: the portal issues a ticket, and the browser exchanges it for a pass."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from accounts.access import Actor
from accounts.credentials.secrets import decrypt
from accounts.credentials.sign_in import person_of
from accounts.credentials.tokens import digest
from accounts.errors import Refusal
from accounts.locks import forget
from workspaces import access
from workspaces.api.ssh_config import bracketed
from workspaces.models import GatewayPass, Phase, Workspace

TICKET_LIFETIME = timedelta(seconds=60)
MOST_PER_SESSION = 20  # per workspace: a page that opens Jupyter over and over must not fill the table


@dataclass(frozen=True)
class Guest:
    """Person who was let in, and the address of Jupyter: `upstream` is empty while nothing runs."""

    user_id: UUID
    upstream: str = ""
    token: str = field(default="", repr=False)


def hand_over(session_key: str, workspace: Workspace) -> str:
    """Create a ticket for the workspace's own host. The portal has checked the person of this session."""
    forget(GatewayPass.objects.filter(is_ticket=True, created_at__lt=timezone.now() - TICKET_LIFETIME))
    same = GatewayPass.objects.filter(session_id=session_key, workspace=workspace).order_by("-created_at")
    outdated = list(same.values_list("pk", flat=True)[MOST_PER_SESSION - 1 :])
    forget(GatewayPass.objects.filter(pk__in=outdated))
    ticket = secrets.token_urlsafe(32)
    GatewayPass.objects.create(digest=digest(ticket), workspace=workspace, session_id=session_key)
    return ticket


def enter(ticket: str, workspace_id: UUID) -> str | None:
    """Exchange a ticket for a pass's secret. None if the ticket is unknown, used, too old or of another workspace."""
    secret = secrets.token_urlsafe(32)
    taken = GatewayPass.objects.filter(
        digest=digest(ticket),
        workspace_id=workspace_id,
        is_ticket=True,
        created_at__gte=timezone.now() - TICKET_LIFETIME,
    ).update(digest=digest(secret), is_ticket=False)
    return secret if taken else None


def admitted(secret: str, workspace_id: UUID) -> Guest | None:
    """Return the pass's guest, or None if the session ended or its person lost the right to this workspace."""
    related = ("workspace__tenant", "workspace__owner", "workspace__secret")
    found = (
        GatewayPass.objects.select_related(*related)
        .filter(digest=digest(secret), workspace_id=workspace_id, is_ticket=False)
        .first()
    )
    user = person_of(found.session_id) if found else None
    if found is None or user is None:
        return None
    workspace = found.workspace
    try:
        access.require_own(Actor(user), workspace)
    except Refusal:
        return None
    if workspace.phase != Phase.READY or not workspace.host or not workspace.jupyter_port:
        return Guest(user.pk)
    upstream = f"http://{bracketed(workspace.host)}:{workspace.jupyter_port}"
    return Guest(user.pk, upstream, decrypt(workspace.secret.jupyter_token))

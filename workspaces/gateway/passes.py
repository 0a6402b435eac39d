"""Who may come through the gateway: a ticket that the portal hands over, and the pass that a browser gets for it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from accounts.access import Actor
from accounts.errors import Refusal
from accounts.locks import forget
from accounts.secrets import decrypt
from accounts.sign_in import person_of
from accounts.tokens import digest
from workspaces import access
from workspaces.models import GatewayPass, Phase, Workspace
from workspaces.ssh_config import bracketed

TICKET_LIFETIME = timedelta(seconds=60)
MOST_PER_SESSION = 20  # of one workspace: a page that opens Jupyter over and over fills no table


@dataclass(frozen=True)
class Guest:
    """Who was let in, and where to: `upstream` is empty while nothing runs there."""

    user_id: UUID
    upstream: str = ""
    token: str = field(default="", repr=False)


def hand_over(session_key: str, workspace: Workspace) -> str:
    """A ticket for the workspace's own host. Whoever asks was let in by the portal in that session."""
    forget(GatewayPass.objects.filter(is_ticket=True, created_at__lt=timezone.now() - TICKET_LIFETIME))
    same = GatewayPass.objects.filter(session_id=session_key, workspace=workspace).order_by("-created_at")
    outdated = list(same.values_list("pk", flat=True)[MOST_PER_SESSION - 1 :])
    forget(GatewayPass.objects.filter(pk__in=outdated))
    ticket = secrets.token_urlsafe(32)
    GatewayPass.objects.create(digest=digest(ticket), workspace=workspace, session_id=session_key)
    return ticket


def enter(ticket: str, workspace_id: UUID) -> str | None:
    """The secret of a pass for this workspace; None where the ticket is unknown, used, old or for another."""
    secret = secrets.token_urlsafe(32)
    taken = GatewayPass.objects.filter(
        digest=digest(ticket),
        workspace_id=workspace_id,
        is_ticket=True,
        created_at__gte=timezone.now() - TICKET_LIFETIME,
    ).update(digest=digest(secret), is_ticket=False)
    return secret if taken else None


def admitted(secret: str, workspace_id: UUID) -> Guest | None:
    """Whom this pass lets into this workspace now: the session lives, and its person still has the right."""
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

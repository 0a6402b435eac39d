"""Tickets and passes of the gateway: the portal issues a ticket, and the browser exchanges it for a pass."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from accounts.access import Actor
from accounts.credentials.sessions import stored_as
from accounts.credentials.sign_in import person_of
from accounts.credentials.tickets import MOST_UNUSED, require_few
from accounts.credentials.tokens import digest
from accounts.errors import Refusal
from accounts.locks import forget
from accounts.models import User
from workspaces import access
from workspaces.models import GatewayPass, Workspace
from workspaces.state import jupyter

# Before Jupyter's token, where a pass may stand.
SCRIPT = "token "
TICKET_LIFETIME = timedelta(seconds=60)
MOST_PER_SESSION = 20  # per workspace: a page that opens Jupyter over and over must not fill the table


@dataclass(frozen=True)
class Guest:
    """Person who was let in, and the address of Jupyter: `upstream` is empty while nothing runs."""

    user_id: UUID
    upstream: str = ""
    token: str = field(default="", repr=False)


def hand_over(session_key: str, workspace: Workspace) -> str:
    """Create a ticket for the workspace's own host. The portal has checked the person of this session, its owner.

    Raise TooMany if they have MOST_UNUSED tickets that no browser has used yet.
    """
    now = timezone.now()
    tickets = GatewayPass.objects.filter(is_ticket=True)
    forget(tickets.filter(created_at__lt=now - TICKET_LIFETIME))
    unused = tickets.filter(workspace__owner=workspace.owner_id, created_at__gte=now - TICKET_LIFETIME)
    made = unused.order_by("created_at").values_list("created_at", flat=True)[:MOST_UNUSED]
    require_few([at + TICKET_LIFETIME for at in made], MOST_UNUSED, now)
    session = stored_as(session_key)
    same = GatewayPass.objects.filter(session_id=session, workspace=workspace).order_by("-created_at")
    outdated = list(same.values_list("pk", flat=True)[MOST_PER_SESSION - 1 :])
    forget(GatewayPass.objects.filter(pk__in=outdated))
    ticket = secrets.token_urlsafe(32)
    GatewayPass.objects.create(digest=digest(ticket), workspace=workspace, session_id=session)
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
    """Return the guest of a pass, or of Jupyter's token after SCRIPT.

    None if the session or the token ended, or its person lost the right to this workspace.
    """
    related = ("tenant", "owner", "secret")
    workspace = Workspace.objects.select_related(*related).filter(pk=workspace_id).first()
    if workspace is None:
        return None
    address = jupyter.address(workspace).rstrip("/")
    if not secret.startswith(SCRIPT):
        user = _holder(secret, workspace)
    else:
        user = _bearer(secret.removeprefix(SCRIPT), workspace) if address else None
    if user is None:
        return None
    try:
        access.require_own(Actor(user), workspace)
    except Refusal:
        return None
    return Guest(user.pk, address, jupyter.gateway_token(workspace)) if address else Guest(user.pk)


def _holder(secret: str, workspace: Workspace) -> User | None:
    """Person of the session that a pass came from."""
    passes = GatewayPass.objects.filter(digest=digest(secret), workspace=workspace, is_ticket=False)
    session = passes.values_list("session_id", flat=True).first()
    return person_of(session) if session else None


def _bearer(token: str, workspace: Workspace) -> User | None:
    """Person whose script brings Jupyter's token: the owner."""
    known = hmac.compare_digest(token.encode(), jupyter.token(workspace).encode())
    return workspace.owner if known and workspace.owner.is_active else None

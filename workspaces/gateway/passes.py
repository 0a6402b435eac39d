"""Tickets and passes of the gateway: the portal issues a ticket, and the browser exchanges it for a pass."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from accounts.access import Actor
from accounts.credentials.sessions import stored_as
from accounts.credentials.sign_in import person_of
from accounts.credentials.tickets import MOST_UNUSED, require_few
from accounts.credentials.tokens import digest
from accounts.locks import forget
from accounts.models import User
from workspaces import access
from workspaces.models import GatewayPass, Workspace
from workspaces.state import declared, jupyter

from .hosts import Site

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
    # Port of the app, behind Jupyter; None: Jupyter itself.
    port: int | None = None
    # Person whose loss of the workspace shows everybody out.
    owner_id: UUID | None = None
    # They came by Jupyter's token, not by a pass: their Authorization header is for the gateway.
    is_script: bool = False


def hand_over(session_key: str, user: User, site: Site) -> str:
    """Create a ticket for the site's own host. The portal has checked that the person of this session may open it.

    Raise TooMany if they have MOST_UNUSED tickets that no browser has used yet.
    """
    now = timezone.now()
    tickets = GatewayPass.objects.filter(is_ticket=True)
    forget(tickets.filter(created_at__lt=now - TICKET_LIFETIME))
    unused = tickets.filter(user=user, created_at__gte=now - TICKET_LIFETIME)
    made = unused.order_by("created_at").values_list("created_at", flat=True)[:MOST_UNUSED]
    require_few([at + TICKET_LIFETIME for at in made], MOST_UNUSED, now)
    session = stored_as(session_key)
    same = GatewayPass.objects.filter(session_id=session, **_of(site)).order_by("-created_at")
    outdated = list(same.values_list("pk", flat=True)[MOST_PER_SESSION - 1 :])
    forget(GatewayPass.objects.filter(pk__in=outdated))
    ticket = secrets.token_urlsafe(32)
    GatewayPass.objects.create(digest=digest(ticket), session_id=session, user=user, **_of(site))
    return ticket


def _of(site: Site) -> dict[str, Any]:
    return {"workspace_id": site.workspace_id, "port": site.port}


def enter(ticket: str, site: Site) -> tuple[str, str] | None:
    """Exchange a ticket for a pass: its secret, and the name of the workspace.

    None if the ticket is unknown, used, too old or of another site.
    """
    secret = secrets.token_urlsafe(32)
    taken = GatewayPass.objects.filter(
        digest=digest(ticket),
        **_of(site),
        is_ticket=True,
        created_at__gte=timezone.now() - TICKET_LIFETIME,
    ).update(digest=digest(secret), is_ticket=False)
    if not taken:
        return None
    return secret, Workspace.objects.values_list("name", flat=True).get(pk=site.workspace_id)


def admitted(secret: str, site: Site) -> Guest | None:
    """Return the guest of a pass, or of Jupyter's token after SCRIPT.

    None if the session or the token ended, its person lost the right to this site, or there is no such app any more.
    """
    related = ("tenant", "owner", "secret")
    workspace = Workspace.objects.select_related(*related).filter(pk=site.workspace_id).first()
    if workspace is None:
        return None
    address = jupyter.address(workspace).rstrip("/")
    is_script = secret.startswith(SCRIPT)
    if not is_script:
        user = _holder(secret, site)
    else:
        user = _bearer(secret.removeprefix(SCRIPT), workspace) if address else None
    if user is None or not _may_open(user, workspace, site):
        return None
    if not address:
        return Guest(user.pk)
    return Guest(
        user.pk, address, jupyter.gateway_token(workspace), site.port, workspace.owner_id, is_script=is_script
    )


def _may_open(user: User, workspace: Workspace, site: Site) -> bool:
    if site.port is not None:
        app = declared.app_at(workspace, site.port)
        if app is None:
            return False
        for_owner = declared.is_code_server(workspace, app)
        return access.may_open_app(Actor(user), workspace, is_shared=app.is_shared, for_owner=for_owner)
    return access.may_work(Actor(user), workspace)


def _holder(secret: str, site: Site) -> User | None:
    """Person of the session that a pass came from."""
    passes = GatewayPass.objects.filter(digest=digest(secret), is_ticket=False, **_of(site))
    session = passes.values_list("session_id", flat=True).first()
    return person_of(session) if session else None


def _bearer(token: str, workspace: Workspace) -> User | None:
    """Person whose script brings Jupyter's token: the owner."""
    known = hmac.compare_digest(token.encode(), jupyter.token(workspace).encode())
    return workspace.owner if known and workspace.owner.is_active else None

"""The ASGI door: what is asked of a workspace's host name goes to its Jupyter, everything else to Berth itself."""

from __future__ import annotations

import json
from http import cookies
from typing import Any
from urllib.parse import parse_qs, quote
from uuid import UUID

from channels.db import database_sync_to_async
from django.conf import settings
from django.utils.translation import gettext as _

from . import carry, hosts, passes, sockets
from .guests import guest_of

ENTER = "/_berth/enter"
REFUSED_POLICY = 1008

Scope = dict[str, Any]


class Gateway:
    """ASGI middleware, before all others: nothing of Berth answers on a workspace's host."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        headers = headers_of(scope)
        workspace_id = hosts.workspace_at(headers.get("host", ""))
        if workspace_id is None:
            await self._application(scope, receive, send)
        elif scope["type"] == "websocket":
            await _socket(scope, receive, send, workspace_id, headers)
        else:
            await _request(scope, receive, send, workspace_id, headers)


def headers_of(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}


async def _request(
    scope: Scope, receive: Any, send: Any, workspace_id: UUID, headers: dict[str, str]
) -> None:
    if scope["path"] == ENTER:
        await _enter(scope, send, workspace_id)
        return
    if not hosts.is_own_page(headers):
        await refuse(send, 403, _("Another page asked for this, which only the workspace's own pages may."))
        return
    secret = pass_in(headers)
    guest = await guest_of(secret, workspace_id)
    if guest is not None and guest.upstream:
        await carry.forward(scope, receive, send, guest)
    elif headers.get("sec-fetch-mode") == "navigate" or "text/html" in headers.get("accept", ""):
        # The portal knows best: it signs in, says why nothing runs, or hands over anew.
        where = f"workspaces/{workspace_id}/" + ("" if guest else f"jupyter/?next={quote(_asked(scope))}")
        await redirect(send, f"{settings.BASE_URL}/{where}")
    elif guest is None:
        await refuse(send, 401, _("You are not signed in to this workspace. Open it from Berth again."))
    else:
        await refuse(send, 503, _("This workspace does not run at the moment."))


async def _socket(scope: Scope, receive: Any, send: Any, workspace_id: UUID, headers: dict[str, str]) -> None:
    secret = pass_in(headers)
    guest = await guest_of(secret, workspace_id) if hosts.is_own_page(headers) else None
    if guest is None or not guest.upstream:
        await receive()
        await send({"type": "websocket.close", "code": REFUSED_POLICY})
        return
    await sockets.carry(scope, receive, send, guest, secret, workspace_id)


async def _enter(scope: Scope, send: Any, workspace_id: UUID) -> None:
    asked = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode()).items()}
    secret = await database_sync_to_async(passes.enter)(asked.get("ticket", ""), workspace_id)
    if secret is None:  # used, or too old: the portal makes another
        await redirect(send, f"{settings.BASE_URL}/workspaces/{workspace_id}/jupyter/")
        return
    await redirect(send, local(asked.get("next", "")), cookie=_cookie(secret))


def local(path: str) -> str:
    """A path on this host, or the start page."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\", ENTER)) else "/lab"


# --- the pass as a cookie


def cookie_name() -> str:
    """`__Host-`: no other workspace's page can set it for this one."""
    return "__Host-berth_pass" if settings.SESSION_COOKIE_SECURE else "berth_pass"


def pass_in(headers: dict[str, str]) -> str:
    try:
        found = cookies.SimpleCookie(headers.get("cookie", "")).get(cookie_name())
    except cookies.CookieError:
        return ""
    return found.value if found else ""


def _cookie(secret: str) -> str:
    secure = "; Secure" if settings.SESSION_COOKIE_SECURE else ""
    return f"{cookie_name()}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}"


# --- short answers


def _asked(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return str(scope["path"]) + (f"?{query}" if query else "")


async def redirect(send: Any, where: str, cookie: str = "") -> None:
    headers = [(b"location", where.encode()), (b"cache-control", b"no-store"), (b"content-length", b"0")]
    headers += [(b"referrer-policy", b"no-referrer")]
    headers += [(b"set-cookie", cookie.encode())] if cookie else []
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body"})


async def refuse(send: Any, status: int, message: str) -> None:
    """As Jupyter's own refusals look to its pages."""
    body = json.dumps({"message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

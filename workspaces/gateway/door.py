"""ASGI entry: requests to the host name of a workspace go to its Jupyter, those to an app's to the app, all others to
Berth itself."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, quote

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from . import carry, guests, hosts, passes, sockets, upstream
from .answers import by_https_alone, redirect, refuse
from .hosts import ENTER, Site
from .passes import Guest

MOST_PASSES = 4
NAME_COOKIE = "berth_name"  # start/jupyter_config.py names the browser's tab by it
CROWDED_SECONDS = 5

Scope = dict[str, Any]


class Gateway:
    """ASGI middleware before all others: Berth's own pages never answer on a workspace's host."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        headers = headers_of(scope)
        site = hosts.site_at(headers.get("host", ""))
        if site is None:
            await self._application(scope, receive, send)
        elif scope["type"] == "websocket":
            await _socket(scope, receive, send, site, headers)
        else:
            await _request(scope, receive, by_https_alone(send), site, headers)


async def _lifespan(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await upstream.close()
    await send({"type": "lifespan.shutdown.complete"})


def headers_of(scope: Scope) -> dict[str, str]:
    """Headers by name. Repeated headers are joined, as in Django: two hosts or two origins then match nothing."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        between = "; " if name == "cookie" else ","
        found[name] = f"{found[name]}{between}{value}" if name in found else value
    return found


async def _request(scope: Scope, receive: Any, send: Any, site: Site, headers: dict[str, str]) -> None:
    if not _is_here(scope):
        await refuse(send, 400, _("An address on this host begins with a slash."))
    elif scope["path"] == ENTER:
        await _enter(scope, send, site, headers)
    elif scope["path"].startswith(hosts.RESERVED):
        await refuse(send, 404, _("Addresses under /_berth/ belong to Berth. There is nothing here."))
    elif not hosts.is_own_page(scope["method"], headers):
        await refuse(
            send, 403, _("This request came from another page. Only the workspace's own pages may send it.")
        )
    elif "service-worker" in headers and scope["raw_path"].count(b"/") == 1:
        # Such a worker would see every address on this host, tickets too, and stay installed.
        await refuse(send, 403, _("A service worker cannot cover a whole workspace host."))
    else:
        await _let_in(scope, receive, send, site, headers)


async def _let_in(scope: Scope, receive: Any, send: Any, site: Site, headers: dict[str, str]) -> None:
    try:
        secret, guest = await _guest(headers, site)
    except (OperationalError, InterfaceError):
        await refuse(send, 503, _("Berth cannot check who you are at the moment. Try again soon."))
        return
    if guest is not None and guest.upstream:
        try:
            with guests.place(site, guest):
                changed = guests.until_changed(secret, site, guest)
                await carry.forward(scope, receive, send, guest, changed)
        except guests.Crowded:
            await refuse(
                send,
                429,
                _("You have too many connections to workspaces. Close some of their pages."),
                retry_after_seconds=CROWDED_SECONDS,
            )
    elif headers.get("sec-fetch-mode") == "navigate" or "text/html" in headers.get("accept", ""):
        # The portal decides: it signs the person in, says why nothing runs, or issues a new ticket.
        page = (
            f"/workspaces/{site.workspace_id}/"
            if guest
            else f"{site.page}?next={quote(upstream.asked(scope))}"
        )
        await redirect(send, f"{_portal(headers)}{page}")
    elif guest is None:
        await refuse(send, 401, _("You are not signed in to this workspace. Open it from Berth again."))
    else:
        await refuse(send, 503, _("This workspace does not run at the moment."))


async def _socket(scope: Scope, receive: Any, send: Any, site: Site, headers: dict[str, str]) -> None:
    secret, guest = "", None
    if _is_here(scope) and hosts.is_own_page("GET", headers):
        secret, guest = await _guest(headers, site)
    try:
        if guest is not None and guest.upstream:
            with guests.place(site, guest):
                await sockets.carry(scope, receive, send, guest, secret, site)
            return
    except guests.Crowded:
        await _refuse_crowded(receive, send)
        return
    await receive()
    await send({"type": "websocket.close", "code": sockets.REFUSED_POLICY})


async def _refuse_crowded(receive: Any, send: Any) -> None:
    """Accept the socket and close it: only an open one can carry the code, and Jupyter's pages then come back."""
    await receive()
    await send({"type": "websocket.accept"})
    reason = "Too many connections to workspaces"
    await send({"type": "websocket.close", "code": sockets.TRY_AGAIN_LATER, "reason": reason})


def _is_here(scope: Scope) -> bool:
    """Accept only a path: the target `*@elsewhere`, put behind an address and a port, would name another server."""
    return bool(scope["raw_path"].startswith(b"/"))


async def _enter(scope: Scope, send: Any, site: Site, headers: dict[str, str]) -> None:
    if scope["method"] != "GET":  # a HEAD request must not use up the ticket
        await refuse(send, 405, _("Only a browser that follows the link can do this."))
        return
    asked = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
    entered = await database_sync_to_async(passes.enter)(asked.get("ticket", ""), site)
    portal = asked.get("from", "")
    if entered is None:  # used or too old: the portal issues another
        await redirect(send, f"{hosts.portal_from(headers['host'], portal)}{site.page}")
        return
    secret, name = entered
    cookies = [_cookie(cookie_name(), f"{secret}.{quote(portal, safe=':[]')}")]
    if site.port is None:
        cookies.append(_cookie(NAME_COOKIE, quote(name)))
    where = local(asked.get("next", ""), "/lab" if site.port is None else "/")
    await redirect(send, where, cookies)


def local(path: str, start: str = "/lab") -> str:
    """Return a path on this host, else its start page. Encoded: browsers drop tabs, and a line break ends a header."""
    path = quote(path, safe="/?#&=%:+,;@!$'()*~[]")
    return path if path.startswith("/") and not path.startswith(("//", "/%5C", ENTER)) else start


# --- the pass as a cookie: its secret, and the portal's host name in this browser


def cookie_name() -> str:
    """Name of the cookie. With `__Host-`, no other workspace's page can set it for this host."""
    return "__Host-berth_pass" if settings.SESSION_COOKIE_SECURE else "berth_pass"


async def _guest(headers: dict[str, str], site: Site) -> tuple[str, Guest | None]:
    """Return the first valid pass, else Jupyter's token that a script brings.

    Several passes: over plain HTTP, another workspace's page may have set a cookie of this name.
    """
    for value in passes_in(headers)[:MOST_PASSES]:
        secret = value.partition(".")[0]
        if guest := await guests.guest_of(secret, site):
            return secret, guest
    kind, _space, token = headers.get("authorization", "").partition(" ")
    secret = passes.SCRIPT + token.strip()
    if kind.lower() in ("token", "bearer") and (guest := await guests.guest_of(secret, site)):
        return secret, guest
    return "", None


def _portal(headers: dict[str, str]) -> str:
    """Origin of the portal for this browser, as its pass says, even if that has ended."""
    names = [value.partition(".")[2] for value in passes_in(headers)]
    return hosts.portal_from(headers["host"], names[0] if names else "")


def passes_in(headers: dict[str, str]) -> list[str]:
    """Passes in the Cookie header. Parsed by hand: in the library, one odd cookie makes all unreadable."""
    pairs = [part.partition("=") for part in headers.get("cookie", "").split(";")]
    return [value.strip() for name, _, value in pairs if name.strip() == cookie_name() and value.strip()]


def _cookie(name: str, value: str) -> str:
    secure = "; Secure" if settings.SESSION_COOKIE_SECURE else ""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}"

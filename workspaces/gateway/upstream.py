"""Connections to workspaces' Jupyter servers, kept open between requests, and to apps; and the headers that pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from django.conf import settings
from yarl import URL

from .passes import Guest
from .tunnel import Tunnel

CONNECT_SECONDS = 5
# Headers of one connection, not of its content (RFC 9110, 7.6.1); Host and Authorization are set by `onward`.
NOT_PASSED = {
    "authorization", "connection", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}  # fmt: skip
# Headers that act beyond this host's pages, or on a proxy before Berth; our server adds the last two itself.
NOT_BACK = {
    "clear-site-data", "service-worker-allowed", "strict-transport-security", "x-sendfile", "date", "server",
}  # fmt: skip
PASS_COOKIES = ("berth_pass", "__Host-berth_pass")
# Jupyter's login (`username-<host>`) would also open it at its own address; its `_xsrf` is for logins by cookie.
JUPYTERS_COOKIES = ("username-", "_xsrf")
FORWARDED = ("x-forwarded-host", "x-forwarded-proto")

Header = tuple[bytes, bytes]
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()


def client() -> aiohttp.ClientSession:
    """Session of this event loop. Only connecting has a time limit: a stream may last for hours."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = _session(aiohttp.TCPConnector(limit=0))
    return _clients[loop]


def _session(connector: aiohttp.BaseConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    )


@asynccontextmanager
async def client_for(guest: Guest) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session whose requests reach what the guest may open: Jupyter, or an app."""
    if guest.port is None:
        yield client()
    else:
        async with _session(Tunnel(guest)) as session:
            yield session


async def close() -> None:
    """Close the connections of this event loop."""
    if ours := _clients.pop(asyncio.get_running_loop(), None):
        await ours.close()


def address(scope: dict[str, Any], guest: Guest) -> URL:
    """Address in Jupyter or the app. Its path begins with a slash (see `door`), or it could name another server."""
    return URL(guest.upstream + asked(scope), encoded=True)


def asked(scope: dict[str, Any]) -> str:
    """Path and query, encoded as the browser sent them."""
    path, query = scope["raw_path"], scope["query_string"]
    return str((path + (b"?" + query if query else b"")).decode("latin-1"))


def onward(headers: Iterable[Header], guest: Guest) -> list[tuple[str, str]]:
    """Request headers for Jupyter, with its token; or for an app, as behind any proxy. Without our cookies."""
    headers = list(headers)
    if guest.port is not None:
        return _onward_to_app(headers, guest)
    return [*_passing(headers, guest), ("Authorization", f"token {guest.token}")]


def _onward_to_app(headers: list[Header], guest: Guest) -> list[tuple[str, str]]:
    """Request headers for an app. Its own Authorization passes; its addresses begin as the browser's do."""
    passed = [(name, value) for name, value in _passing(headers, guest) if name not in FORWARDED]
    if not guest.is_script:
        sent = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
        passed += [("Authorization", value) for value in sent]
    host = next((value for name, value in passed if name == "Host"), "")
    scheme = settings.BASE_URL.partition(":")[0]
    return [*passed, ("X-Forwarded-Host", host), ("X-Forwarded-Proto", scheme)]


def _passing(headers: list[Header], guest: Guest) -> list[tuple[str, str]]:
    ends_here = _of_connection(headers)
    passed = []
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == "host":
            passed.append(("Host", value))
        elif name == "cookie":
            if rest := without_pass(value, guest):
                passed.append(("Cookie", rest))
        elif name not in ends_here and not name.startswith("sec-websocket-"):
            passed.append((name, value))
    return passed


def _of_connection(headers: Iterable[Header]) -> set[str]:
    """Names of headers that do not pass: NOT_PASSED, and those that the Connection header lists."""
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    return NOT_PASSED | {name.strip() for name in listed.decode("latin-1").lower().split(",")}


def without_pass(cookie: str, guest: Guest) -> str:
    parts = (part.strip() for part in cookie.split(";"))
    return "; ".join(part for part in parts if not _stays_here(part.partition("=")[0].strip(), guest))


def _stays_here(name: str, guest: Guest) -> bool:
    """Return True for cookies that pass in neither direction."""
    return name in PASS_COOKIES or (guest.port is None and name.startswith(JUPYTERS_COOKIES))


def back(headers: Iterable[Header], guest: Guest) -> list[Header]:
    """Answer headers for the browser: cookies stay on this host."""
    headers = list(headers)
    ends_here = _of_connection(headers) | NOT_BACK
    passed = []
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        value = on_this_host(raw_value, guest) if name == "set-cookie" else raw_value
        if value and name not in ends_here and not name.startswith("x-accel-"):
            passed.append((name.encode("latin-1"), value))
    return passed


def on_this_host(cookie: bytes, guest: Guest) -> bytes:
    """Return the cookie without its domain; empty if it must not pass."""
    parts = cookie.decode("latin-1").split(";")
    if _stays_here(parts[0].strip().lstrip("=").partition("=")[0].strip(), guest):
        return b""
    kept = [part for part in parts if part.strip().partition("=")[0].strip().lower() != "domain"]
    return ";".join(kept).encode("latin-1")

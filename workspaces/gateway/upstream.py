"""The connections to workspaces' Jupyter servers, kept open between requests; and which headers pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import aiohttp
from yarl import URL

from .passes import Guest

CONNECT_SECONDS = 5
# Of one connection, not of what it carries (RFC 9110, 7.6.1); the host is set by hand, the rest is the pass's.
NOT_PASSED = {
    "authorization", "connection", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}  # fmt: skip
PASS_COOKIES = ("berth_pass", "__Host-berth_pass")

Header = tuple[bytes, bytes]
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()


def client() -> aiohttp.ClientSession:
    """One per event loop. What streams for hours is no fault, so only connecting has a limit."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
    return _clients[loop]


def address(scope: dict[str, Any], guest: Guest) -> URL:
    """As the browser wrote it: an encoded slash in a file's name stays one."""
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope["query_string"]
    return URL(guest.upstream + (path + (b"?" + query if query else b"")).decode("latin-1"), encoded=True)


def onward(headers: Iterable[Header], guest: Guest) -> list[tuple[str, str]]:
    """A request's headers as Jupyter gets them: its own token, and no cookie of ours."""
    passed = []
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == "host":
            passed.append(("Host", value))
        elif name == "cookie":
            if rest := without_pass(value):
                passed.append(("Cookie", rest))
        elif name not in NOT_PASSED and not name.startswith("sec-websocket-"):
            passed.append((name, value))
    return [*passed, ("Authorization", f"token {guest.token}")]


def without_pass(cookie: str) -> str:
    kept = [part for part in cookie.split("; ") if part.partition("=")[0].strip() not in PASS_COOKIES]
    return "; ".join(kept)


def back(headers: Iterable[tuple[bytes, bytes]]) -> list[Header]:
    """An answer's headers as the browser gets them: a cookie stays on this host."""
    passed = []
    for raw_name, raw_value in headers:
        name, value = raw_name.lower(), raw_value
        if name == b"set-cookie":
            value = on_this_host(value)
        if name.decode("latin-1") not in NOT_PASSED and value:
            passed.append((name, value))
    return passed


def on_this_host(cookie: bytes) -> bytes:
    """Without a domain, and none that is ours."""
    parts = cookie.decode("latin-1").split(";")
    if parts[0].partition("=")[0].strip() in PASS_COOKIES:
        return b""
    kept = [part for part in parts if part.strip().partition("=")[0].lower() != "domain"]
    return ";".join(kept).encode("latin-1")

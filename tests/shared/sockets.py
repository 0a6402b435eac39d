"""Websockets of the whole ASGI application, spoken to in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.test import Client

from accounts.access import Actor
from portal.asgi import application

SECONDS = 30.0
in_thread: Callable[..., Any] = database_sync_to_async


class Socket:
    """A websocket, from the side of a browser."""

    def __init__(self, address: str, headers: list[tuple[bytes, bytes]]) -> None:
        parts = urlsplit(address)
        scope = {
            "type": "websocket",
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        self.wire: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]

    async def opens(self) -> bool:
        await self.wire.send_input({"type": "websocket.connect"})
        return bool((await self.wire.receive_output(SECONDS))["type"] == "websocket.accept")

    async def hear(self) -> Any:
        frame = await self.wire.receive_output(SECONDS)
        assert frame["type"] == "websocket.send", frame
        return json.loads(frame["text"])

    async def hear_until(self, fits: Callable[[Any], bool]) -> list[Any]:
        heard = [await self.hear()]
        while not fits(heard[-1]):
            heard.append(await self.hear())
        return heard

    async def closed_with(self) -> int:
        while True:
            frame = await self.wire.receive_output(SECONDS)
            if frame["type"] == "websocket.close":
                return int(frame["code"])

    async def leave(self) -> None:
        await self.wire.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wire.wait(SECONDS)


def headers_of(actor: Actor | None, origin: str = "http://testserver") -> list[tuple[bytes, bytes]]:
    """Headers as a browser sends them, with the session of the actor."""
    headers = [(b"host", b"testserver"), (b"origin", origin.encode())]
    if actor is not None:
        client = Client()
        client.force_login(actor.user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode()))
    return headers


@asynccontextmanager
async def socket(address: str, actor: Actor | None = None) -> AsyncIterator[Socket]:
    socket = Socket(address, await in_thread(headers_of)(actor))
    assert await socket.opens()
    try:
        yield socket
    finally:
        await socket.leave()


# --- Waiting, while the rest runs in the same event loop


async def until(what: str, look: Callable[[], Any], seconds: float = 10) -> None:
    """Ask again and again whether `what` has come true."""
    async with asyncio.timeout(seconds):
        while not look():
            await asyncio.sleep(0.005)


async def until_still(figure: Callable[[], int]) -> int:
    """Return the figure once it no longer changes: buffers are full, and sender and carrier have had many turns."""
    seen, same = figure(), 0
    while same < 20:
        await asyncio.sleep(0.005)
        same = same + 1 if figure() == seen else 0
        seen = figure()
    return seen

"""Carry a websocket to Jupyter or an app and back, message by message: the next is read when the last was taken."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import aiohttp

from . import upstream
from .guests import until_shown_out
from .hosts import Site
from .passes import Guest

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 30
CLOSE_SECONDS = 1.0
LARGEST_MESSAGE_BYTES = 64 * 2**20
SENT_CODES = {1000, 1001, 1002, 1003, *range(1007, 1015), *range(3000, 5000)}  # RFC 6455, 7.4; IANA
GOING_AWAY, REFUSED_POLICY, TRY_AGAIN_LATER = 1001, 1008, 1013


async def carry(
    scope: dict[str, Any], receive: Any, send: Any, guest: Guest, secret: str, site: Site
) -> None:
    await receive()  # websocket.connect
    try:
        async with upstream.client_for(guest) as client:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                jupyter = await client.ws_connect(
                    upstream.address(scope, guest),
                    protocols=scope.get("subprotocols", ()),
                    headers=upstream.onward(scope["headers"], guest),
                    max_msg_size=LARGEST_MESSAGE_BYTES,
                )
            try:
                await send({"type": "websocket.accept", "subprotocol": jupyter.protocol})
                code = await _between(jupyter, receive, send, until_shown_out(secret, site, guest))
            finally:
                await _leave(jupyter)
        if code is not None:  # last: a browser that does not read delays this
            await send({"type": "websocket.close", "code": code})
    except (aiohttp.ClientError, TimeoutError) as error:
        log.info("a workspace refuses a websocket: %s", type(error).__name__)
        await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})


async def _leave(jupyter: aiohttp.ClientWebSocketResponse) -> None:
    """Close the connection, without waiting for a server that keeps sending."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await jupyter.close()


async def _between(
    jupyter: aiohttp.ClientWebSocketResponse, receive: Any, send: Any, shown_out: Any
) -> int | None:
    """Carry both ways until one side ends. Return the code to close the browser with; None if the browser closed."""
    down = asyncio.ensure_future(_to_browser(jupyter, send))
    up = asyncio.ensure_future(_to_jupyter(jupyter, receive))
    end = asyncio.ensure_future(shown_out)
    try:
        await asyncio.wait({down, up, end}, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            return REFUSED_POLICY
        hung_up = up.done() and up.exception() is None
        return None if hung_up else await down
    finally:
        for task in (down, up, end):
            task.cancel()
        await asyncio.gather(down, up, end, return_exceptions=True)


async def _to_browser(jupyter: aiohttp.ClientWebSocketResponse, send: Any) -> int:
    async for message in jupyter:
        if message.type == aiohttp.WSMsgType.TEXT:
            await send({"type": "websocket.send", "text": message.data})
        elif message.type == aiohttp.WSMsgType.BINARY:
            await send({"type": "websocket.send", "bytes": message.data})
    code = jupyter.close_code or GOING_AWAY
    return code if code in SENT_CODES else GOING_AWAY


async def _to_jupyter(jupyter: aiohttp.ClientWebSocketResponse, receive: Any) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") is not None:
            await jupyter.send_str(message["text"])
        else:
            await jupyter.send_bytes(message["bytes"])

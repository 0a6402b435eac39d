"""One HTTP request carried to Jupyter and its answer back, piece by piece: nothing is held whole, and whoever is slow
slows only their own pieces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from django.utils.translation import gettext as _

from . import upstream
from .passes import Guest

log = logging.getLogger(__name__)

BODILESS = {"GET", "HEAD", "OPTIONS"}


class BrowserGone(Exception):
    """Nobody waits for the answer any more."""


class BrokenOff(Exception):
    """Jupyter's side ended in the middle of an answer: the browser must not take the part for the whole."""


class Incoming:
    """What the browser sends; `whole` once its body has come to its end."""

    def __init__(self, receive: Any) -> None:
        self._receive = receive
        self.whole = False

    async def pieces(self) -> AsyncIterator[bytes]:
        while not self.whole:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise BrowserGone
            self.whole = not message.get("more_body")
            if message.get("body"):
                yield message["body"]

    async def gone(self) -> None:
        """Returns when the browser hangs up."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def forward(scope: dict[str, Any], receive: Any, send: Any, guest: Guest) -> None:
    incoming = Incoming(receive)
    has_body = has_a_body(scope)
    try:
        async with upstream.client().request(
            scope["method"],
            upstream.address(scope, guest),
            headers=upstream.onward(scope["headers"], guest),
            data=incoming.pieces() if has_body else None,
            allow_redirects=False,
        ) as answer:
            if not has_body:
                await anext(incoming.pieces(), None)
            await _while_listened_to(_answer(answer, send), incoming)
    except BrowserGone:
        pass
    except BrokenOff as broken:
        log.info("a workspace's Jupyter broke off: %s", type(broken.__cause__).__name__)
    except (aiohttp.ClientConnectionError, TimeoutError) as error:
        log.info("a workspace's Jupyter does not answer: %s", type(error).__name__)
        await _not_there(send)


def has_a_body(scope: dict[str, Any]) -> bool:
    names = {name for name, _ in scope["headers"]}
    return bool({b"content-length", b"transfer-encoding"} & names) and scope["method"] not in BODILESS


async def _answer(answer: aiohttp.ClientResponse, send: Any) -> None:
    headers = upstream.back(answer.raw_headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    try:
        async for piece in answer.content.iter_any():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except aiohttp.ClientError as error:
        raise BrokenOff from error
    await send({"type": "http.response.body"})


async def _while_listened_to(answering: Any, incoming: Incoming) -> None:
    """Stop fetching what nobody reads."""
    work = asyncio.ensure_future(answering)
    hung_up = asyncio.ensure_future(incoming.gone()) if incoming.whole else None
    try:
        await asyncio.wait({work, hung_up} if hung_up else {work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        for task in (work, hung_up):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (work, hung_up) if task), return_exceptions=True)


async def _not_there(send: Any) -> None:
    body = _("JupyterLab does not answer at the moment. This page tries again by itself.").encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"retry-after", b"3"),
        (b"refresh", b"3"),
    ]
    await send({"type": "http.response.start", "status": 502, "headers": headers})
    await send({"type": "http.response.body", "body": body})

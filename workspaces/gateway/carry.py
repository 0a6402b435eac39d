"""Carry an HTTP request to Jupyter or an app and the answer back, piece by piece: neither is held whole, and a slow
client slows only its own request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from django.utils.translation import gettext as _

from . import tunnel, upstream
from .answers import answer
from .passes import Guest

log = logging.getLogger(__name__)

UNTIL_WHEN = (b"content-length", b"transfer-encoding")


class BrowserGone(Exception):
    """The browser hung up: nobody waits for the answer."""


class Incoming:
    """Messages from the browser, until it hangs up."""

    def __init__(self, receive: Any) -> None:
        self._receive = receive
        self._whole = asyncio.Event()  # the body is complete

    async def pieces(self) -> AsyncIterator[bytes]:
        while not self._whole.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise BrowserGone
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                self._whole.set()

    async def gone(self) -> None:
        """Return when the browser hangs up."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Outgoing:
    """Answer to the browser; once it is `begun`, no other answer can be sent."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: dict[str, Any]) -> None:
        self.begun = True
        await self._send(message)


async def forward(scope: dict[str, Any], receive: Any, send: Any, guest: Guest, changed: Any) -> None:
    """Carry until the answer is complete, the browser hangs up, or `changed` returns: the guest lost access."""
    incoming, outgoing = Incoming(receive), Outgoing(send)
    exchange = asyncio.ensure_future(_exchange(scope, incoming, outgoing, guest))
    ends = [exchange, asyncio.ensure_future(incoming.gone()), asyncio.ensure_future(changed)]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if exchange.done():
            exchange.result()
    except BrowserGone:
        pass
    except (aiohttp.ClientError, TimeoutError) as error:
        if outgoing.begun:  # the server hangs up, so that the browser sees a broken answer
            log.info("a workspace's Jupyter broke off: %s", type(error).__name__)
        else:
            log.info("a workspace's Jupyter does not answer: %s", type(error).__name__)
            await _not_there(send, guest, error)
    finally:
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _exchange(scope: dict[str, Any], incoming: Incoming, send: Outgoing, guest: Guest) -> None:
    has_body = has_a_body(scope)
    if not has_body:
        await anext(incoming.pieces(), None)
    async with (
        upstream.client_for(guest) as client,
        client.request(
            scope["method"],
            upstream.address(scope, guest),
            headers=upstream.onward(scope["headers"], guest),
            data=incoming.pieces() if has_body else None,
            allow_redirects=False,
        ) as given,
    ):
        if given.status < 200:  # a switch to another protocol that was not asked for
            raise aiohttp.ClientPayloadError
        headers = upstream.back(given.raw_headers, guest)
        await send({"type": "http.response.start", "status": given.status, "headers": headers})
        async for piece in given.content.iter_any():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


def has_a_body(scope: dict[str, Any]) -> bool:
    """Read it from the framing, whatever the method: a length without a body would swallow the next request's bytes."""
    framing = {name: value for name, value in scope["headers"] if name in UNTIL_WHEN}
    return framing.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in framing


async def _not_there(send: Any, guest: Guest, error: Exception) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"retry-after", b"3"),
        (b"refresh", b"3"),
    ]
    await answer(send, 502, headers, _why(guest, error).encode())


def _why(guest: Guest, error: Exception) -> str:
    if isinstance(error, tunnel.NotListening):
        return _(
            "Nothing listens at port %(port)d of this workspace. Start the app there, on 127.0.0.1 or 0.0.0.0. "
            "This page retries automatically."
        ) % {"port": guest.port}
    if isinstance(error, tunnel.NoWay):
        return _("This workspace was started before it could have apps. Restart it once.")
    if guest.port is not None:
        return _("The app does not answer at the moment. This page retries automatically.")
    return _("JupyterLab does not answer at the moment. This page retries automatically.")

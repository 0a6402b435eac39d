"""Connections to the apps in a workspace: each is a tunnel through its Jupyter, which joins it to the app's port.

So an app is reached wherever Jupyter is, and needs no port in a Service or network policy.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from workspaces.state.jupyter import request_for_tunnel

from .passes import Guest

CONNECT_SECONDS = 10
END = b"\r\n\r\n"
MOST_HEAD_BYTES = 16_384


class NotListening(aiohttp.ClientConnectionError):
    """Nothing listens at the app's port."""


class NoWay(aiohttp.ClientConnectionError):
    """The workspace was started by a Berth that had no apps: its Jupyter knows no way to them."""


REFUSALS = {404: NoWay, 502: NotListening}


class Tunnel(aiohttp.BaseConnector):
    """Connector of aiohttp whose connections all lead to the app of one guest."""

    def __init__(self, guest: Guest) -> None:
        super().__init__(force_close=True, limit=0)
        self._guest = guest

    async def _create_connection(  # as BaseConnector calls it
        self,
        req: Any,
        traces: Any,
        timeout: Any,  # noqa: ASYNC109
    ) -> ResponseHandler:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport = await _open(self._guest, self._loop)
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            raise aiohttp.ClientConnectionError from error
        protocol = self._factory()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return protocol


async def _open(guest: Guest, loop: asyncio.AbstractEventLoop) -> asyncio.Transport:
    at = URL(guest.upstream)
    transport, handshake = await loop.create_connection(
        lambda: _Handshake(loop), at.host or "", at.port or 80
    )
    try:
        transport.write(request_for_tunnel(f"/berth/apps/{guest.port}", at.authority, guest.token))
        refuse(await handshake.status)
    except BaseException:
        transport.abort()
        raise
    return transport


def refuse(status: int) -> None:
    if status != 101:
        raise REFUSALS.get(status, aiohttp.ClientConnectionError)


class _Handshake(asyncio.Protocol):
    """Reads Jupyter's answer, after which the connection is the app's. `status` is its HTTP status."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.status: asyncio.Future[int] = loop.create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self.status.done():
            return
        if END in self._head:
            self.status.set_result(_status(self._head))
        elif len(self._head) > MOST_HEAD_BYTES:
            self.status.set_result(0)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.status.done():
            self.status.set_exception(exc or ConnectionResetError())


def _status(answer: bytes) -> int:
    """Return the status of an answer; 0 if it is none, or if an app speaks before it was asked: that is no HTTP."""
    words = answer.split(b"\r\n", 1)[0].split(b" ")
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    return 0 if status == 101 and not answer.endswith(END) else status

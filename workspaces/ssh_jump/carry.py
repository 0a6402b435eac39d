"""Tunnel between a channel of a person's connection on this side and a TCP connection to the workspace on the far side.

Bytes pass as they come, and a slow reader slows only its own direction: the next bytes are read when there is room for
them. Room is needed in three places: the workspace's connection, the channel, and the person's connection that all
their channels share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import asyncssh

from .rights import Target

LONGEST_HEAD = 4096  # of an HTTP answer, in bytes
LAST_BYTES_SECONDS = 10.0  # for bytes still on their way to a workspace when its person has left


class Tunnel(asyncssh.SSHTCPSession[bytes]):
    """The person's side. `over` is called when their ssh has closed the channel too."""

    def __init__(self, over: Callable[[Tunnel], None]) -> None:
        self.target: Target | None = None
        self.ended = False
        self._over = over
        self._channel: asyncssh.SSHTCPChannel[bytes] | None = None
        self._far: Far | None = None
        self._no_room: set[str] = set()
        self._silent: set[str] = set()  # sides that have sent their end

    def lead_to(self, target: Target, far: Far) -> None:
        self.target, self._far = target, far
        far.near = self
        self._heed_room()
        if far.transport.is_closing():
            self.end()

    def end(self) -> None:
        """End the tunnel at once, from either side."""
        if self.ended:
            return
        self.ended = True
        if self._far is not None:
            self._far.leave()
        if self._channel is not None:
            self._channel.close()
        else:
            self._over(self)

    def no_room(self, where: str) -> None:
        """Read nothing more from the workspace until there is `room` again in all the places."""
        self._no_room.add(where)
        self._heed_room()

    def room(self, where: str) -> None:
        self._no_room.discard(where)
        self._heed_room()

    def _heed_room(self) -> None:
        if self._far is not None:
            self._far.read(not self._no_room)

    # --- calls by the far side

    def pass_on(self, data: bytes) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(data)

    def pass_on_end(self) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write_eof()
        self._said_its_last("far")

    def _said_its_last(self, side: str) -> None:
        self._silent.add(side)
        if len(self._silent) == 2:
            self.end()

    def far_has_room(self, has_room: bool) -> None:
        if self._channel is not None and not self.ended:
            (self._channel.resume_reading if has_room else self._channel.pause_reading)()

    # --- calls by the channel

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._channel = chan
        if self.ended:  # while the channel was being opened
            chan.close()
        elif self._far is not None:
            self._far.begin()

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        if self._far is not None and not self.ended:
            self._far.transport.write(data)

    def eof_received(self) -> bool:
        if self._far is not None and not self.ended:
            self._far.transport.write_eof()
        self._said_its_last("near")
        return True  # the other direction goes on

    def pause_writing(self) -> None:
        self.no_room("channel")

    def resume_writing(self) -> None:
        self.room("channel")

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()
        self._over(self)


class Far(asyncio.Protocol):
    """The workspace's side. Its bytes wait until the channel is open."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.near: Tunnel | None = None
        self._begun = False
        self._may_read = True
        self._early = b""
        self._early_end = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def begin(self) -> None:
        assert self.near is not None
        self._begun = True
        if self._early:
            self.near.pass_on(self._early)
        if self._early_end:
            self.near.pass_on_end()
        self.read(self._may_read)

    def read(self, may: bool) -> None:
        self._may_read = may
        if self._begun:
            (self.transport.resume_reading if may else self.transport.pause_reading)()

    def leave(self) -> None:
        """Close after the last bytes were sent; abort if the workspace does not take them in time."""
        self.transport.close()
        asyncio.get_running_loop().call_later(LAST_BYTES_SECONDS, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._begun and self.near is not None:
            self.near.pass_on(data)
        else:
            self._early += data
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        if self._begun and self.near is not None:
            self.near.pass_on_end()
        self._early_end = not self._begun
        return True  # the other direction goes on

    def pause_writing(self) -> None:
        if self.near is not None:
            self.near.far_has_room(False)

    def resume_writing(self) -> None:
        if self.near is not None:
            self.near.far_has_room(True)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.near is not None:
            self.near.end()


class Behind(Far):
    """Far side behind an HTTP server, whose answer comes first: what follows its head is the connection."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        if self.is_open.done():
            super().data_received(data)
            return
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if end or len(self._head) > LONGEST_HEAD:
            self.is_open.set_result(head.startswith(b"HTTP/1.1 101 "))
            if rest:
                super().data_received(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_open.done():
            self.is_open.set_result(False)
        super().connection_lost(exc)


async def reach(target: Target, *, timeout_seconds: float) -> Far:
    """Connect to the address in the row. Raise OSError or TimeoutError if nobody answers."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout_seconds):
        if not target.request:
            _transport, direct = await loop.create_connection(Far, target.host, target.port)
            return direct
        _transport, far = await loop.create_connection(Behind, target.host, target.port)
        is_open = False
        try:
            far.transport.write(target.request)
            is_open = await far.is_open
        finally:
            if not is_open:
                far.transport.abort()
    if not is_open:
        raise OSError("Jupyter refused")
    return far

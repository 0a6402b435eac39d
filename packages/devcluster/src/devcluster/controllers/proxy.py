"""Listening port that forwards TCP to a chosen endpoint, with back-pressure and half-close."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from devcluster.network import Connect

CHUNK = 64 * 1024
Choose = Callable[[], tuple[str, int] | None]


class Proxy:
    def __init__(self, choose: Choose, connect: Connect):
        self._choose, self._connect = choose, connect
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def listen(self, at: socket.socket) -> None:
        """Listen on a bound socket, which belongs to the proxy from now on."""
        self._server = await asyncio.start_server(self._connected, sock=at)

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()  # the Service is gone: its connections break
        finally:
            self._open.discard(task)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = self._choose()
        if behind is None:
            return
        try:
            far_reader, far_writer = await self._connect(*behind)
        except OSError:
            return
        try:
            await asyncio.gather(_pour(reader, far_writer), _pour(far_reader, writer))
        except OSError:
            pass  # either side broke the connection
        finally:
            far_writer.close()


async def _pour(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
    while chunk := await source.read(CHUNK):
        drain.write(chunk)
        await drain.drain()
    with contextlib.suppress(OSError):
        if drain.can_write_eof():
            drain.write_eof()
        await drain.drain()

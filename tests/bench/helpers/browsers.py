"""Thousands of browsers' websockets in one cheap process: frames are kept with their arrival time, to be read later."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import time
import zlib
from collections.abc import Iterator
from typing import Any

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
COMPRESSED = 0x40
TCP_REPAIR = 19
SMALL_BUFFER_BYTES = 4096


class Browser(asyncio.Protocol):
    """Websocket as a browser opens it: it offers compression, and answers pings."""

    def __init__(self, path: str, origin: str, session: str) -> None:
        self.path, self.session, self._origin = path, session, origin
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard = asyncio.Event()
        self.ended_at: float | None = None
        self._frames: list[tuple[float, bool, bytes]] = []
        self._rest = b""
        self._inflate = zlib.decompressobj(-15)
        self._is_compressed = False

    async def open(self, host: str, port: int, *, reads_little: bool = False) -> None:
        ours = socket.socket()
        ours.setblocking(False)
        if reads_little:  # unread data then backs up in Berth, not in this machine's buffers
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(ours, (host, port))
        await loop.create_connection(lambda: self, sock=ours)
        await asyncio.wait_for(self.opened, 30)

    def abandon(self) -> None:
        """Read no more, answer nothing, close nothing, like a closed laptop or a proxy that forgot."""
        self._transport.pause_reading()

    def vanish(self) -> None:
        """Vanish without sending an end, as after a loss of power."""
        ours = self._transport.get_extra_info("socket")
        ours.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        self._transport.abort()

    def close(self) -> None:
        self._transport.abort()

    def messages(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield the messages since the last call, each with its arrival time."""
        frames, self._frames = self._frames, []
        for at, is_compressed, data in frames:
            text = self._inflate.decompress(data + b"\0\0\xff\xff") if is_compressed else data
            yield at, json.loads(text)

    def forget(self) -> None:
        """Drop the messages so far. They are still unpacked, for compression continues from frame to frame."""
        for _ in self.messages():
            pass

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        lines = (
            f"GET {self.path} HTTP/1.1",
            f"Host: {self._origin.partition('//')[2]}",
            f"Origin: {self._origin}",
            f"Cookie: berth_session={self.session}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        )
        transport.write("\r\n".join((*lines, "", "")).encode())

    def data_received(self, data: bytes) -> None:
        at = time.monotonic()
        self._rest += data
        if not self.opened.done():
            head, separator, rest = self._rest.partition(b"\r\n\r\n")
            if not separator:
                return
            if not head.startswith(b"HTTP/1.1 101"):
                self.opened.set_exception(ConnectionError(head.decode()))
                return
            self._rest = rest
            self.opened.set_result(None)
        while (frame := self._take_frame()) is not None:
            first, payload = frame
            if first & 15 == TEXT:
                self._frames.append((at, bool(first & COMPRESSED), payload))
                self.heard.set()
            elif first & 15 == PING:
                mask = os.urandom(4)
                masked = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
                self._transport.write(bytes([0x80 | PONG, 0x80 | len(payload)]) + mask + masked)

    def _take_frame(self) -> tuple[int, bytes] | None:
        """Return the next whole frame as first byte and payload, or None. A server masks nothing."""
        data = self._rest
        if len(data) < 2:
            return None
        size, begin = data[1] & 127, 2
        if size > 125:
            begin = 4 if size == 126 else 10
            if len(data) < begin:
                return None
            size = int.from_bytes(data[2:begin], "big")
        if len(data) < begin + size:
            return None
        self._rest = data[begin + size :]
        return data[0], data[begin : begin + size]

    def connection_lost(self, error: Exception | None) -> None:
        self.ended_at = time.monotonic()
        if not self.opened.done():
            self.opened.set_exception(error or ConnectionError("closed before it was open"))

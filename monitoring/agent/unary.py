"""Single gRPC call over a unix socket without a gRPC library: its 20 MiB would be half of what the agent may take.

HTTP/2 as far as one call on a fresh connection needs it. Our windows are as large as possible, so the answer never
waits for us. Headers are written without compression state; headers of the answer are not read, because a whole message
is the proof of success. Anything else raises CallFailed.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 16 << 20

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0x0, 0x1, 0x3, 0x4, 0x6, 0x7, 0x8
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 0x1, 0x1, 0x4, 0x8
_WIDEST = 0x7FFFFFFF
_STREAM = 1
_OURS = (
    (0x1, 0),  # header table size: 0, as we read no headers
    (0x2, 0),  # no pushes
    (0x4, _WIDEST),  # window of each stream
)


class CallFailed(Exception):
    """The call got no complete answer."""


def call(path: Path, method: str, request: bytes, timeout_seconds: float) -> bytes:
    """Return the answer's message. `method` is like "/v1.PodResourcesLister/List". Raise CallFailed."""
    until = time.monotonic() + timeout_seconds
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(str(path))
            connection.sendall(_opening(method, request))
            return _message(b"".join(_body(connection, until)))
    except OSError as error:
        raise CallFailed(error.strerror or str(error)) from None


def _opening(method: str, request: bytes) -> bytes:
    headers = (
        b"\x83\x86"  # :method POST, :scheme http, by their numbers in HPACK's table
        + (b"\x04" + _text(method))  # :path
        + (b"\x01" + _text("localhost"))  # :authority
        + (b"\x0f\x10" + _text("application/grpc"))  # content-type
        + (b"\x00" + _text("te") + _text("trailers"))
    )
    settings = b"".join(struct.pack(">HI", *setting) for setting in _OURS)
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, settings)
        + _frame(_WINDOW, 0, 0, struct.pack(">I", _WIDEST - 0xFFFF))
        + _frame(_HEADERS, _END_HEADERS, _STREAM, headers)
        + _frame(_DATA, _END_STREAM, _STREAM, struct.pack(">BI", 0, len(request)) + request)
    )


def _text(value: str) -> bytes:
    """Encode a string below 127 bytes as a plain HPACK string."""
    return bytes([len(value)]) + value.encode("ascii")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _body(connection: socket.socket, until: float) -> Iterator[bytes]:
    """Yield the data on our stream, up to its end."""
    received = 0
    while True:
        head = _exactly(connection, 9, until)
        length, kind, flags, stream = int.from_bytes(head[:3]), head[3], head[4], int.from_bytes(head[5:])
        received += length
        if received > MOST_BYTES:
            raise CallFailed("the answer is too long")
        payload = _exactly(connection, length, until)
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            connection.sendall(_frame(_PING, _ACK, 0, payload))
        elif kind == _GOAWAY:
            raise CallFailed("the other side went away")
        elif stream & _WIDEST == _STREAM:
            if kind == _RESET:
                raise CallFailed("the call was refused")
            if kind == _DATA:
                yield _unpadded(payload) if flags & _PADDED else payload
            if kind in {_DATA, _HEADERS} and flags & _END_STREAM:
                return


def _exactly(connection: socket.socket, count: int, until: float) -> bytes:
    """Read `count` bytes. The deadline holds for all of them, so that many slow frames cannot exceed it."""
    parts = bytearray()
    while len(parts) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise CallFailed("no answer in time")
        connection.settimeout(left)
        part = connection.recv(min(count - len(parts), 1 << 16))
        if not part:
            raise CallFailed("the connection ended within the answer")
        parts += part
    return bytes(parts)


def _unpadded(payload: bytes) -> bytes:
    if not payload or payload[0] >= len(payload):
        raise CallFailed("a frame's padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]


def _message(body: bytes) -> bytes:
    if len(body) < 5:
        raise CallFailed("the call was answered with an error")
    packed, length = struct.unpack_from(">BI", body)
    if packed or length != len(body) - 5:
        raise CallFailed("the answer is not one whole message")
    return body[5:]

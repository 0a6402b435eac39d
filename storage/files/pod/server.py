"""Serve the files below one folder over HTTP to whoever brings the token. It runs alone in the pod of a files session,
as `python3 -m files.server`, on the standard library of Python 3.9 or newer.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .sftp import Conversation
from .tree import (
    PIECE,
    Refused,
    Uploads,
    closing_fd,
    listed,
    moved,
    opened_file,
    piece_of,
    place_of,
    receive,
    refusal_of,
    removed,
    span_of,
)

PORT = 8888
MOST_AT_ONCE = 32
MOST_DISCARDED = 64 * 2**20
SILENCE_SECONDS = 60  # of a client in the middle of a request
UPLOAD = re.compile(r"[A-Za-z0-9_-]{0,64}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECONDS
    left = 0  # bytes of an upload that were not read yet
    server: Server

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/ready":
            self._answer(200, {})
        else:
            self._guarded(self._get)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self._guarded(self._put, writes=True)

    def do_POST(self) -> None:
        if urlsplit(self.path).path == "/sftp":
            self._guarded(self._sftp)
        else:
            self._guarded(self._post, writes=True)

    def do_DELETE(self) -> None:
        self._guarded(self._delete, writes=True)

    def _guarded(self, work: Callable[[], None], *, writes: bool = False) -> None:
        """Do the work for whoever has the token. What was not read of a body would be the next request."""
        if not self.server.places.acquire(blocking=False):
            self.close_connection = True
            self._answer(429, {"code": "too_many"})
            return
        try:
            self._check(writes)
            work()
        except Refused as refused:
            self._refuse(refused)
        except (TimeoutError, ConnectionError):
            self.close_connection = True
        except OSError as error:
            self._refuse(refusal_of(error))
        finally:
            self.server.places.release()

    def _check(self, writes: bool) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("latin-1", "replace"), b"Bearer " + self.server.token):
            raise Refused(401, "no_token")
        if writes and self.server.read_only:
            raise Refused(403, "read_only")
        address = urlsplit(self.path)
        self.asked, self.what = parse_qs(address.query, errors="surrogateescape"), address.path

    def _refuse(self, refused: Refused) -> None:
        """Answer with a refusal, once the rest of a piece was read: its sender would not hear of it before."""
        self.close_connection = True
        if self.left <= MOST_DISCARDED:
            with suppress(OSError):
                while self.left > 0 and self._read(PIECE):
                    pass
        self._answer(refused.status, refused.facts)

    def _one(self, name: str) -> str:
        return self.asked.get(name, [""])[-1]

    def _get(self) -> None:
        if self.what == "/list":
            self._answer(200, listed(self.server.root, self._one("path"), self._one("after")))
            return
        with place_of(self.server.root, self._one("path")) as place, closing_fd(opened_file(place)) as found:
            self._send(found)

    def _send(self, found: int) -> None:
        size = os.fstat(found).st_size
        span = span_of(self.headers.get("Range", ""), size)
        first, last = span or (0, size - 1)
        self.send_response(206 if span else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        if span:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.end_headers()
        self.wfile.flush()
        if first > last or self.command == "HEAD":
            return
        with os.fdopen(found, "rb", closefd=False) as file:
            try:
                if self.connection.sendfile(file, first, last - first + 1) <= last - first:
                    self.close_connection = True  # it became shorter meanwhile
            except OSError as error:  # an answer is under way: no other can be given
                raise ConnectionError from error

    def _put(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            raise Refused(411, "no_length")
        self.left, upload = int(length), self._one("upload")
        if not UPLOAD.fullmatch(upload):
            raise Refused(422, "bad_path")
        piece = piece_of(self.headers.get("Content-Range"), int(length))
        with place_of(self.server.root, self._one("path")) as place:
            done = receive(place, piece, upload, self.server.uploads, self._read)
        self._answer(201 if done.get("done") else 202, done)

    def _read(self, most: int) -> bytes:
        data = self.rfile.read1(min(most, self.left))
        self.left = self.left - len(data)
        return data

    def _post(self) -> None:
        if self.what == "/folder":
            with place_of(self.server.root, self._one("path")) as place:
                os.mkdir(place.name, 0o755, dir_fd=place.folder)
        elif self.what == "/move":
            moved(self.server.root, self._one("path"), self._one("to"))
        else:
            raise Refused(404, "no_such_file")
        self._answer(201, {})

    def _sftp(self) -> None:
        """Speak SFTP on this connection from here on. Berth's SSH jump ends it with the person's right to it."""
        self.close_connection = True
        self.send_response(101)
        self.send_header("Upgrade", "sftp")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.wfile.flush()
        self.connection.settimeout(None)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        read_only = self.server.read_only or self._one("read_only") == "true"
        Conversation(self.rfile, self.wfile, self.server.root, read_only=read_only).run()

    def _delete(self) -> None:
        with place_of(self.server.root, self._one("path")) as place:
            is_gone = removed(place, self._one("recursive") == "true")
        self._answer(200 if is_gone else 202, {})

    def _answer(self, status: int, facts: dict[str, Any]) -> None:
        body = json.dumps(facts).encode()
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: addresses hold people's file names."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], folder: str, token: bytes, *, read_only: bool) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.token, self.read_only = token, read_only
        self.uploads, self.places = Uploads(), threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, Handler)


def main(folder: str, token_file: str, *options: str) -> None:
    """Serve until the pod ends: this is process 1 there, which no signal ends by itself."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    os.umask(0o022)
    token = Path(token_file).read_bytes().strip()
    with Server((os.environ["POD_IP"], PORT), folder, token, read_only="--read-only" in options) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A real HTTP server that keeps what it is sent, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """`status` and `answer` are what the server answers with; `holds`: it answers once this is set."""

    got: list[Got] = field(default_factory=list)
    status: int = 200
    answer: bytes = b"ok"
    location: str = ""
    holds: threading.Event | None = None
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=deep-secret"


@contextmanager
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            kept.got.append(Got(self.command, self.path, headers, body))
            if kept.holds is not None:
                kept.holds.wait(60)
            self.send_response(kept.status)
            if kept.location:
                self.send_header("Location", kept.location)
            self.send_header("Content-Length", str(len(kept.answer)))
            self.end_headers()
            self.wfile.write(kept.answer)

        do_GET = do_POST = handle_any  # noqa: N815  (names of http.server)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        kept.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield kept
        if kept.holds is not None:
            kept.holds.set()
        server.shutdown()
        thread.join()

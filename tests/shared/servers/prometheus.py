"""Prometheus server over HTTP: answers in a form that was seen in the wild, and faults of servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from monitoring.dcgm.prometheus import Series

Fault = Callable[[BaseHTTPRequestHandler], None]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.told: dict[str, Sequence[Series]] = {}
        self.fault: Fault | None = None
        self.asked: list[tuple[str, str]] = []  # query and authorization
        self.ended = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: the client has hung up."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body after its head would wait 40 ms for an acknowledgement
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        assert parts.path.endswith("/api/v1/query"), self.path
        query = parse_qs(parts.query)["query"][0]
        self.server.asked.append((query, self.headers.get("Authorization", "")))
        if self.server.fault:
            self.server.fault(self)
        else:
            send(self, 200, answer(self.server.told.get(query.rpartition("[")[0], [])))

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def send(request: BaseHTTPRequestHandler, status: int, content: bytes, **headers: str) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


def answer(series: Sequence[Series]) -> bytes:
    """Return a range vector as Prometheus writes it."""
    result: list[dict[str, Any]] = [
        {"metric": one.labels, "values": [[at, f"{value:g}"] for at, value in one.samples]} for one in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@contextmanager
def prometheus() -> Iterator[Server]:
    with Server() as found:
        threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield found
        found.ended.set()
        found.shutdown()

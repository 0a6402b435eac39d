"""The portal's side of the agent's reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Batches = list[dict[str, Any]]


class Receiver:
    """The portal's side: it keeps what it takes, and returns the answers that a test sets."""

    def __init__(self) -> None:
        self.taken: Batches = []
        self.seen: list[tuple[str, str]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.refuses: Callable[[dict[str, Any]], int] = lambda _: 0
        self.connections = 0
        self.hangs_up_after_each = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                batch = json.loads(body)
                outer.seen.append((self.path, self.headers["Authorization"]))
                status, headers = outer.answers.pop(0) if outer.answers else (outer.refuses(batch), {})
                if not status:
                    outer.taken.append(batch)
                self.send_response(status or 204)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()
                self.close_connection = outer.hangs_up_after_each

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore errors: some tests break connections off."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def sequences(self) -> list[int]:
        return [told["sequence"] for batch in self.taken for told in batch["reports"]]

"""Tiny HTTP server whose answers are failures: each is a way in which a cluster can fail."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import ApiClient, Configuration

from clusters.api import Api
from clusters.transport import Transport

Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """Request handler; answers use its helper methods."""

    protocol_version = "HTTP/1.1"
    stub: Stub

    def do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.content = self.rfile.read(length)
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        watches = "watch" in self.query
        self.stub.requests.append(("WATCH" if watches else self.command, self.query))
        answers = self.stub.watches if watches else self.stub.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self)

    def do_GET(self) -> None:
        self.do()

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - named for their methods by the base class

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def json(self, status: int, body: Any, **headers: str) -> None:
        self.text(status, json.dumps(body).encode(), **headers)

    def text(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def event(self, change: str, body: dict[str, Any]) -> None:
        self.chunk(json.dumps({"type": change, "object": body}).encode() + b"\n")

    def end_stream(self) -> None:
        self.chunk(b"")


class Stub:
    """Answers of the server, used up one by one; the last one stays. `requests` are those received, in order.

    `api` sends its requests there.
    """

    api: Api

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.watches: list[Answer] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()

    def wait(self, seconds: float) -> None:
        """Stay silent, at most until the end of the test."""
        self.released.wait(seconds)

    @property
    def methods(self) -> list[str]:
        return [method for method, __ in self.requests]


@contextmanager
def serving() -> Iterator[Stub]:
    stub = Stub()
    handler = type("Handler", (Request,), {"stub": stub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()
    try:
        stub.api = api_at(server.server_port)
        yield stub
    finally:
        stub.released.set()
        server.shutdown()
        server.server_close()


def api_at(port: int) -> Api:
    configuration = Configuration(host=f"http://127.0.0.1:{port}")
    configuration.retries = False
    configuration.api_key = {"BearerToken": "Bearer very-secret-token"}
    return Api(Transport(ApiClient(configuration)))


# --- answers


def listed(*objects: dict[str, Any], version: str = "10", **metadata: str) -> Answer:
    body = {"kind": "PodList", "metadata": {"resourceVersion": version, **metadata}, "items": list(objects)}
    return lambda request: request.json(200, body)


def status(code: int, reason: str, message: str, **headers: str) -> Answer:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return lambda request: request.json(code, body, **headers)


def text(code: int, content: bytes) -> Answer:
    return lambda request: request.text(code, content)


def reset(request: Request) -> None:
    """Reset the connection before there is an answer."""
    linger = struct.pack("ii", 1, 0)
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    request.close_connection = True
    request.connection.close()


def events(*told: tuple[str, dict[str, Any]], ends: bool = True) -> Answer:
    """Return an answer that streams these events, then ends or stays open and silent."""

    def answer(request: Request) -> None:
        request.start_stream()
        for change, body in told:
            request.event(change, body)
        if ends:
            request.end_stream()
        else:
            request.stub.wait(20)
            request.close_connection = True

    return answer


def garbage(request: Request) -> None:
    request.start_stream()
    request.chunk(b"<html>Bad gateway</html>\n")
    request.end_stream()


def pod(uid: str, version: str, **parts: Any) -> dict[str, Any]:
    metadata = {"uid": uid, "name": uid, "namespace": "berth-demo", "resourceVersion": version}
    return {"kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": "Running"}, **parts}


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (2)"}

"""The program that serves files, as a process of its own on a folder of this machine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from storage.files import pod

MIB = 2**20
TOKEN = "of-this-session"
SECRET = "nobody may read this"
STARTS = """
import os, socket, sys
from files import server
server.PORT = 0
with server.Server(("127.0.0.1", 0), sys.argv[1], b"{token}", read_only="--read-only" in sys.argv) as served:
    print(served.server_address[1], flush=True)
    served.serve_forever()
"""


class Pod:
    """Client of the program."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port

    def ask(
        self, method: str, what: str, data: bytes | None = None, token: str = TOKEN, **options: Any
    ) -> tuple[int, Any]:
        """Return the status, and the facts or the bytes. `content_range` and `range` are headers."""
        headers = {"Authorization": f"Bearer {token}"}
        for name in ("content_range", "range"):
            if value := options.pop(name, ""):
                headers[name.replace("_", "-")] = value
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, f"{what}?{urlencode(options, errors='surrogateescape')}", data, headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, json.loads(body) if answer.headers[
            "Content-Type"
        ] == "application/json" else body

    def put(self, path: str, data: bytes, **options: Any) -> tuple[int, Any]:
        return self.ask("PUT", "/content", data, path=path, **options)

    def names(self, path: str = "") -> list[str]:
        return [one["name"] for one in self.ask("GET", "/list", path=path)[1]["entries"]]

    def breaks_off(self, path: str, header: str, data: bytes) -> None:
        """Send less than was announced, and cut the connection."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        lines = f"PUT /content?path={path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{header}\r\n\r\n"
        connection.sendall(lines.encode() + data)
        connection.close()


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Pod]:
    (folder / "volume").mkdir(exist_ok=True)
    (folder / "outside.txt").write_text(SECRET)
    program = folder / "program" / "files"
    program.mkdir(parents=True)
    for name, text in pod.files().items():  # as the ConfigMap has them
        (program / name).write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS.format(token=TOKEN), str(folder / "volume"), *options],
        env={"PYTHONPATH": str(program.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield Pod(folder / "volume", int(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()

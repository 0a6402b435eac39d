"""A kernel and a terminal of a running Jupyter, as a browser drives them: REST and websockets with the token."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
import uuid
from types import TracebackType
from typing import Any, Protocol, Self

from websockets.sync.client import connect


class Server(Protocol):
    """A Jupyter: where to connect, and the host that is asked for."""

    @property
    def address(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def host(self) -> str: ...

    @property
    def token(self) -> str: ...


class Connected:
    """Something that Jupyter starts on POST, speaks with over a websocket, and ends on DELETE."""

    kind: str
    channel: str
    identifier: str

    def __init__(self, server: Server) -> None:
        self.server = server
        made = json.loads(self._ask("POST", f"/api/{self.kind}"))
        self.path = f"/api/{self.kind}/{made[self.identifier]}"
        self._connection = connect(
            f"ws://{server.host}{self.channel.format(made[self.identifier])}",
            sock=socket.create_connection((server.address, server.port), timeout=20),
            additional_headers=self._headers(),
            max_size=None,
        )

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self.server.token}"}

    def _ask(self, method: str, path: str) -> bytes:
        address = f"http://{self.server.address}:{self.server.port}{path}"
        headers = self._headers() | {"Host": self.server.host}
        request = urllib.request.Request(address, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return bytes(answer.read())

    def _receive(self) -> Any:
        return json.loads(self.socket.recv(timeout=30))

    def __enter__(self) -> Self:
        self.socket = self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, at)


class Kernel(Connected):
    kind, channel, identifier = "kernels", "/api/kernels/{}/channels", "id"

    def start(self, code: str) -> str:
        """Send a cell to run. Return the id of the request."""
        message_id = uuid.uuid4().hex
        header = {"msg_id": message_id, "msg_type": "execute_request", "username": "", "session": message_id,
                  "version": "5.3", "date": ""}  # fmt: skip
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": False}  # fmt: skip
        message = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        self.socket.send(json.dumps(message | {"buffers": []}))
        return message_id

    def wait_until_printed(self, text: str) -> None:
        while text not in self._receive()["content"].get("text", ""):
            pass

    def interrupt(self) -> None:
        self._ask("POST", f"{self.path}/interrupt")

    def run(self, code: str) -> str:
        """Run a cell. Return what it printed, and its last value."""
        message_id, said = self.start(code), []
        while True:
            message = self._receive()
            if message["parent_header"].get("msg_id") != message_id:
                continue
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    said.append(content["text"])
                case "execute_result":
                    said.append(content["data"]["text/plain"])
                case "error":
                    said.append("\n".join(content["traceback"]))
                case "status" if content["execution_state"] == "idle":
                    return "".join(said)


class Terminal(Connected):
    kind, channel, identifier = "terminals", "/terminals/websocket/{}", "name"

    def run(self, command: str) -> str:
        """Type a command. Return what it prints."""
        self.socket.send(json.dumps(["stdin", f"echo be''gun; {command}; echo en''ded\r"]))
        said = ""
        while not (found := re.search(r"begun\r\n(.*?)(?:\r\n)?ended\r\n", said, re.DOTALL)):
            kind, *rest = self._receive()
            if kind == "stdout":
                said += rest[0]
        return found[1].replace("\r\n", "\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, at)
        self._ask("DELETE", self.path)

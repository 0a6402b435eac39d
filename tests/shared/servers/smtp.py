"""A mail server on loopback that can be told to misbehave."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast


class MailServer(socketserver.ThreadingTCPServer):
    """A mail server that keeps what it accepts. `replies` replace 250, by command; each takes `seconds`, until `over`
    is set."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.sessions = 0
        self.replies: dict[str, str] = {}
        self.seconds = 0.0
        self.over = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Session(socketserver.StreamRequestHandler):
    """A connection, with the commands of RFC 5321 that smtplib uses."""

    server: MailServer

    def handle(self) -> None:
        self.server.sessions += 1
        self.say("220 mail.test ESMTP")
        recipient = ""
        while line := self.rfile.readline().decode().strip():
            command = line.split(" ", 1)[0].upper()
            reply = self.server.replies.get(command)
            if command == "RCPT":
                recipient = line.partition("<")[2].partition(">")[0]
                reply = reply or self.server.replies.get(recipient)
            if command == "QUIT":
                self.say("221 bye")
                return
            if reply is None and command == "DATA":
                self.say("354 go on")
                body = self.body()
                reply = self.server.replies.get("BODY")
                if reply is None:
                    self.server.messages.append(message_from_bytes(body, policy=cast(Any, policy.default)))
                    self.server.recipients.append(recipient)
            self.say(reply or "250 ok")
            if reply and reply.startswith("421"):
                return

    def body(self) -> bytes:
        lines: list[bytes] = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        return b"".join(lines)

    def say(self, text: str) -> None:
        self.server.over.wait(self.server.seconds)
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()

"""Commands beside a container's main one (exec, probes, hooks), forked by the sandbox's first process on request.

As its children they have the pod's namespaces, user and rights. From this machine they get only the pipes made here;
a terminal is the pod's own, and its other side is sent back over a socket.
"""

import array
import asyncio
import contextlib
import fcntl
import itertools
import json
import os
import socket
import struct
import termios
from dataclasses import dataclass
from typing import Any

KILLED = 137
DRAIN_SECONDS = 1.0
MOST_COMMAND_BYTES = 64 * 1024
"""So that an order fits into the tie whole."""


class CannotExecute(Exception):
    """Failure to begin a command; the message is in the words of container runtimes."""

    @classmethod
    def because(cls, told: str) -> "CannotExecute":
        return cls(f"OCI runtime exec failed: exec failed: {told}")


@dataclass(frozen=True)
class Wish:
    """Command to run, and the streams that its caller wants."""

    command: list[str]
    stdin: bool = False
    tty: bool = False


class Session:
    """Running command, until `wait` returns its exit code."""

    def __init__(self, control: "Control", number: int, fate: socket.socket):
        self._control, self._number, self._fate = control, number, fate
        self.stdin: asyncio.StreamWriter | None = None
        self.outputs: list[asyncio.StreamReader] = []
        """stdout and stderr; with a terminal just one for both."""
        self._terminal: int | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self._exit = asyncio.ensure_future(self._ending())

    async def wait(self) -> int:
        return await asyncio.shield(self._exit)

    def resize(self, width: int, height: int) -> None:
        if self._terminal is not None:
            size = struct.pack("HHHH", min(height, 0xFFFF), min(width, 0xFFFF), 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def close(self) -> None:
        """End the command: its caller is gone."""
        if not self._exit.done():
            self._control.order({"kill": self._number})
        self._exit.cancel()
        for transport in self._transports:
            transport.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None
        self._fate.close()

    async def _ending(self) -> int:
        text = b""
        while not text.endswith(b"\n"):
            await readable(self._fate.fileno())
            part = self._fate.recv(4096)
            if not part:
                return KILLED  # its container has ended with all its processes
            text += part
        told: dict[str, Any] = json.loads(text)
        if "failed" in told:
            raise _not_started(told["failed"])
        return int(told["exit"])

    async def use_pipes(self, stdout: int, stderr: int, stdin: int | None) -> None:
        self.outputs = [await self._reader(stdout), await self._reader(stderr)]
        if stdin is not None:
            self.stdin = await self._writer(stdin)

    async def use_terminal(self, terminal: int) -> None:
        self._terminal = terminal
        self.outputs = [await self._reader(os.dup(terminal))]
        self.stdin = await self._writer(os.dup(terminal))

    async def _reader(self, number: int) -> asyncio.StreamReader:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: Output(reader), os.fdopen(number, "rb", buffering=0)
        )
        self._transports.append(transport)
        return reader

    async def _writer(self, number: int) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
            os.fdopen(number, "wb", buffering=0),
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)


class Output(asyncio.StreamReaderProtocol):
    def connection_lost(self, exc: Exception | None) -> None:
        """Replace the error by which a terminal ends with EOF: an error would hide output not read yet."""
        super().connection_lost(None if isinstance(exc, OSError) else exc)


async def run(session: Session, most_bytes: int) -> tuple[int, bytes]:
    """Wait for a command's exit. Return its code and the beginning of its output."""
    said = bytearray()

    async def listen(output: asyncio.StreamReader) -> None:
        while part := await output.read(4096):
            said.extend(part[: most_bytes - len(said)])

    listening = [asyncio.ensure_future(listen(output)) for output in session.outputs]
    try:
        code = await session.wait()
        await asyncio.wait(listening, timeout=DRAIN_SECONDS)
        return code, bytes(said)
    finally:
        for task in listening:
            task.cancel()
        session.close()


class Control:
    """Socket to a sandbox's first process. `uid` is the pod's on this machine."""

    def __init__(self, tie: socket.socket, uid: int):
        self._tie, self._uid = tie, uid
        tie.setblocking(False)
        self._numbers = itertools.count(1)

    async def send_plan(self, plan: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._tie, plan + b"\n")

    def end(self) -> None:
        self.order({"end": True})

    def order(self, order: dict[str, Any], descriptors: list[int] | None = None) -> None:
        line = json.dumps(order).encode() + b"\n"
        with contextlib.suppress(OSError):  # the sandbox has ended
            socket.send_fds(self._tie, [line], descriptors or [])

    async def execute(self, wish: Wish) -> Session:
        if not wish.command:
            raise CannotExecute.because("args must not be empty")
        if len(json.dumps(wish.command)) > MOST_COMMAND_BYTES:
            raise CannotExecute.because("argument list too long")
        fate, theirs = socket.socketpair()
        fate.setblocking(False)
        number = next(self._numbers)
        order = {"exec": number, "command": wish.command, "tty": wish.tty}
        if wish.tty:
            with theirs:
                self.order(order, [theirs.fileno()])
            try:
                terminal = await _terminal(fate)
            except BaseException:
                fate.close()
                raise
            session = Session(self, number, fate)
            await session.use_terminal(terminal)
            return session
        pipes = [os.pipe() for _ in range(3 if wish.stdin else 2)]
        ours = [pipes[0][0], pipes[1][0], *(p[1] for p in pipes[2:])]
        given = [pipes[0][1], pipes[1][1], *(p[0] for p in pipes[2:])]
        with theirs:
            for pipe in given:
                os.fchown(pipe, self._uid, self._uid)  # otherwise /dev/stdout could not be opened
            self.order(order | {"streams": len(given)}, [theirs.fileno(), *given])
        for pipe in given:
            os.close(pipe)
        session = Session(self, number, fate)
        await session.use_pipes(ours[0], ours[1], ours[2] if wish.stdin else None)
        return session

    def close(self) -> None:
        self._tie.close()


async def _terminal(fate: socket.socket) -> int:
    """Return our side of a terminal in the pod."""
    await readable(fate.fileno())
    text, rights, _, _ = fate.recvmsg(4096, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    for _, _, content in rights:
        return int(array.array("i", content)[0])
    raise _not_started(json.loads(text)["failed"]) if text else CannotExecute("the container has ended")


def _not_started(told: str) -> CannotExecute:
    return CannotExecute.because(f"unable to start container process: {not_found(told)}")


def not_found(told: str) -> str:
    """Return an error of execvp in the words of container runtimes."""
    name, _, why = told.rpartition(": ")
    if why != "No such file or directory":
        return told
    if "/" in name:
        return f'exec: "{name}": stat {name}: no such file or directory'
    return f'exec: "{name}": executable file not found in $PATH'


async def readable(number: int) -> None:
    """Wait until a descriptor has data to read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(number, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(number)

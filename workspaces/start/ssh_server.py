"""The SSH server of a workspace whose image has no sshd but a Python with asyncssh.

Does what sshd does for its one user: exec, shell, terminal, sftp, scp and port forwarding, with the keys of the mounted
list. Sessions get this process's environment, which is that of a notebook's terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import pwd
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

try:
    import asyncssh
except ImportError:
    sys.exit(3)  # for start.sh: it can never run here

PORT = 2222
CHUNK_BYTES = 65536
MAX_UNAUTHENTICATED = 30
SECRET = Path(__file__).parent.parent / "secret"
KEYS = SECRET / "authorized_keys"
# Keys of colleagues, who come in through Berth and Jupyter alone (berth_apps.py), so from this pod's own address.
COLLEAGUES = SECRET / "colleague_keys"
POD_IP = os.environ.get("POD_IP", "")
# Public half of Berth's own key, where it asks by SSH what runs here; see status.sh.
STATUS_KEY = SECRET / "status_key"
LIMITS = "no-port-forwarding,no-pty,no-agent-forwarding,no-X11-forwarding"
STATUS = f'{LIMITS},command="exec /bin/sh {Path(__file__).parent}/status.sh"'
KEYS_READ_SECONDS = 2
USER = pwd.getpwuid(os.getuid()).pw_name
HOME = os.environ["HOME"]
SHELL = os.environ.get("SHELL", "/bin/sh")

log = logging.getLogger("ssh")


class Door(asyncssh.SSHServer):
    """SSH server for the image's user alone, with a key of the list as it is at this moment."""

    knocking: set[asyncssh.SSHServerConnection] = set()
    inside: set[asyncssh.SSHServerConnection] = set()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.conn = conn
        if len(self.knocking) >= MAX_UNAUTHENTICATED:
            conn.abort()
        self.knocking.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self.knocking.discard(self.conn)
        self.inside.discard(self.conn)

    def begin_auth(self, username: str) -> bool:
        keys = None
        if username == USER:
            with contextlib.suppress(OSError, ValueError):  # an unreadable or empty list lets nobody in
                keys = asyncssh.import_authorized_keys(KEYS.read_text() + status_line() + self.colleagues())
        self.conn.set_authorized_keys(keys)
        return True

    def colleagues(self) -> str:
        """Return the keys of colleagues, if this connection comes from inside the pod."""
        comes_from = self.conn.get_extra_info("peername")[0]
        return f"\n{COLLEAGUES.read_text()}" if comes_from == POD_IP and COLLEAGUES.exists() else ""

    def auth_completed(self) -> None:
        self.knocking.discard(self.conn)
        self.inside.add(self.conn)
        log.info("%s signed in from %s", USER, self.conn.get_extra_info("peername")[0])

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Awaitable[asyncssh.SSHTCPSession[bytes]]:
        loop = asyncio.get_running_loop()
        return forward_to(loop.create_connection(Forward, dest_host, dest_port))

    def unix_connection_requested(self, dest_path: str) -> Awaitable[asyncssh.SSHUNIXSession[bytes]]:
        return forward_to(asyncio.get_running_loop().create_unix_connection(Forward, dest_path))


def status_line() -> str:
    """Return the line for Berth's own key, which may run `status.sh` and nothing else; empty if there is none."""
    key = STATUS_KEY.read_text().strip() if STATUS_KEY.exists() else ""
    return f"\n{STATUS} {key}\n" if key else ""


class Forward(asyncssh.SSHForwarder):
    """End of a forwarded connection. asyncssh's own class stays open for ever once both sides have sent their end."""

    def eof_received(self) -> bool:
        stays_open = super().eof_received()
        if not stays_open:
            self.close()
        return stays_open


async def forward_to(connecting: Coroutine[object, object, tuple[object, Forward]]) -> Any:
    try:
        _, there = await connecting
    except OSError as error:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from None
    return Forward(there)


class Files(asyncssh.SFTPServer):
    """sftp, and scp over it. To scp, a session without an exit status is a failure."""

    def exit(self) -> None:
        if self.channel.get_subsystem() == "sftp":
            with contextlib.suppress(OSError):  # the client has closed it
                self.channel.exit(0)


# --- Reading and writing without blocking: an end of a pipe or a terminal's master side


async def ready(fd: int, add: Callable[..., None], remove: Callable[[int], object]) -> None:
    event = asyncio.Event()
    add(fd, event.set)
    try:
        await event.wait()
    finally:
        remove(fd)


async def chunks(fd: int) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    while True:
        try:
            data = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            await ready(fd, loop.add_reader, loop.remove_reader)
            continue
        except OSError:  # nobody holds the terminal any more
            return
        if not data:
            return
        yield data


async def write_all(fd: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            await ready(fd, loop.add_writer, loop.remove_writer)


# --- A session


class Session:
    """A command or a shell, on a terminal or on three pipes; it may outlive its connection, as under sshd."""

    def __init__(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self.process = process
        self.terminal: int | None = None
        self.opened: list[int] = []
        if process.term_type is None:
            self._start_on_pipes()
        else:
            self._start_on_terminal()
        for fd in self.opened:
            os.set_blocking(fd, False)

    def _start_on_pipes(self) -> None:
        self.child = self._spawn((subprocess.PIPE,) * 3)
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert pipe is not None
            self.opened.append(os.dup(pipe.fileno()))
            pipe.close()
        self.stdin, stdout, stderr = self.opened
        self.outputs = {stdout: self.process.stdout, stderr: self.process.stderr}

    def _start_on_terminal(self) -> None:
        self.terminal, other_side = os.openpty()
        self.opened = [self.terminal]
        self.stdin = self.terminal
        self.outputs = {self.terminal: self.process.stdout}
        self._resize(self.process.term_size)
        try:
            self.child = self._spawn((other_side,) * 3, SSH_TTY=os.ttyname(other_side))
        finally:
            os.close(other_side)

    def _spawn(self, stdio: tuple[int, ...], **variables: str) -> subprocess.Popen[bytes]:
        command = self.process.command
        client = self.process.get_extra_info("peername")
        server = self.process.get_extra_info("sockname")
        env = os.environ | variables
        env["SSH_CLIENT"] = f"{client[0]} {client[1]} {server[1]}"
        env["SSH_CONNECTION"] = f"{client[0]} {client[1]} {server[0]} {server[1]}"
        if self.process.term_type is not None:
            env["TERM"] = self.process.term_type
        return subprocess.Popen(
            [SHELL] if command is None else [SHELL, "-c", command],
            stdin=stdio[0], stdout=stdio[1], stderr=stdio[2], cwd=HOME, env=env, start_new_session=True,
            preexec_fn=None if self.terminal is None else take_terminal,  # noqa: PLW1509 (one system call is safe)
        )  # fmt: skip

    def _resize(self, size: tuple[int, int, int, int]) -> None:
        columns, rows, width, height = size
        if self.terminal is not None and columns and rows:
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, width, height))

    async def run(self) -> None:
        """Run until the command has ended and its output is sent, or the connection is gone."""
        work = asyncio.ensure_future(self._work())
        gone = asyncio.ensure_future(self.process.wait_closed())
        feed = asyncio.ensure_future(self._feed())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, gone, feed):
                task.cancel()
            await asyncio.gather(work, gone, feed, return_exceptions=True)
            for fd in self.opened:  # closing the terminal hangs up the shell
                with contextlib.suppress(OSError):
                    os.close(fd)

    async def _work(self) -> None:
        await asyncio.gather(*(self._send(fd, writer) for fd, writer in self.outputs.items()))
        code = await asyncio.to_thread(self.child.wait)
        if code >= 0:
            self.process.exit(code)
        else:
            self.process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))

    async def _send(self, fd: int, writer: asyncssh.SSHWriter[bytes]) -> None:
        async for data in chunks(fd):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0)  # a chatty command leaves room for the other sessions

    async def _feed(self) -> None:
        """Pass on the client's input, resizes and signals; the end of its input closes the command's."""
        while True:
            try:
                data = await self.process.stdin.read(CHUNK_BYTES)
                if not data:
                    break
                await write_all(self.stdin, data)
            except asyncssh.TerminalSizeChanged as change:
                self._resize(change.term_size)
            except asyncssh.SignalReceived as received:
                self._signal(received.signal)
            except asyncssh.BreakReceived:
                self._signal("INT")
            except BrokenPipeError:  # it reads no more, but may still get signals
                continue
        if self.terminal is None:
            self.opened.remove(self.stdin)
            os.close(self.stdin)

    def _signal(self, name: str) -> None:
        with contextlib.suppress(KeyError, ProcessLookupError):
            os.killpg(self.child.pid, signal.Signals[f"SIG{name}"])


def take_terminal() -> None:
    """Make standard input the controlling terminal. Runs in the child."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
    if process.subsystem is not None:
        process.exit(1)
        return
    try:
        session = Session(process)
    except OSError as error:
        process.stderr.write(f"The session could not start: {error}\r\n".encode())
        process.exit(255)
        return
    await session.run()


async def watch_keys() -> None:
    """End all connections when a key is removed: their person may have lost the right. Other keys connect again."""
    known = set[str]()
    while True:
        with contextlib.suppress(OSError):  # the kubelet is replacing it
            now = set(KEYS.read_text().splitlines())
            if known - now:
                log.info("an SSH key was removed, all connections end")
                for connection in list(Door.inside):
                    connection.abort()
            known = now
        await asyncio.sleep(KEYS_READ_SECONDS)


async def main() -> None:
    os.chdir(HOME)
    await asyncssh.listen(
        POD_IP or "0.0.0.0",  # noqa: S104 (the container's own network)
        PORT,
        server_factory=Door,
        server_host_keys=[str(SECRET / "ssh_host_ed25519_key")],
        process_factory=serve,
        sftp_factory=Files,
        allow_scp=True,
        agent_forwarding=False,
        gss_host=None,
        password_auth=False,
        kbdint_auth=False,
        line_editor=False,
        encoding=None,
        login_timeout=30,
        keepalive_interval=60,
        keepalive_count_max=3,
    )
    await watch_keys()


if __name__ == "__main__":
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.INFO)
    asyncssh.set_log_level(logging.WARNING)
    # The shell started this in the background, where Ctrl-C is ignored; sessions would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    asyncio.run(main())

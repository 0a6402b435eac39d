"""Stage for SSH through Berth: a jump, a workspace that answers on TCP, and people with keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import asyncssh
from django.db import connections

from accounts.access import Actor
from accounts.credentials import ssh_keys
from accounts.models import SSHKey
from tests.cast import Cast
from tests.shared.sockets import in_thread
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace
from workspaces.ssh_jump.host_key import ready_key
from workspaces.ssh_jump.serving import jump

KIB, MIB = 2**10, 2**20
Channel = tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]


@dataclass
class Upstream:
    """A workspace's SSH port: it echoes and counts, or does what `does` says."""

    port: int = 0
    connections: int = 0
    taken_bytes: int = 0
    given_bytes: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    does: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError):
            await (self.does or self.echo)(reader, writer)
            writer.close()
        self.left.set()

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(64 * KIB):
            self.taken_bytes += len(piece)
            writer.write(piece)
            await writer.drain()

    async def flood(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x" * 64 * KIB)
            await writer.drain()
            self.given_bytes += 64 * KIB

    async def ignore(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()


@dataclass
class Stage:
    cast: Cast
    upstream: Upstream
    workspace: Workspace
    port: int
    host_key: asyncssh.SSHKey
    keys: dict[str, asyncssh.SSHKey]
    own_ids: dict[str, SSHKey]

    async def connect(
        self, person: str = "bob", *, key: str = "", **options: Any
    ) -> asyncssh.SSHClientConnection:
        """Connect as this person, with their key, another person's, or what `client_keys` says."""
        if "client_keys" not in options:
            options["client_keys"] = [self.keys[key or person]]
        return await asyncssh.connect(
            "127.0.0.1",
            self.port,
            username=person,
            known_hosts=([self.host_key.convert_to_public()], [], []),
            config=None,
            agent_path=None,
            **options,
        )

    async def open(self, connection: asyncssh.SSHClientConnection, name: str = "", port: int = 22) -> Channel:
        return await connection.open_connection(name or f"berth-{self.workspace.pk}", port)

    async def refusal(
        self, connection: asyncssh.SSHClientConnection, name: str, port: int = 22
    ) -> tuple[int, str]:
        try:
            await self.open(connection, name, port)
        except asyncssh.ChannelOpenError as error:
            return error.code, error.reason
        raise AssertionError(f"{name} was opened")


async def echoes(channel: Channel) -> bool:
    reader, writer = channel
    writer.write(b"hello")
    return await asyncio.wait_for(reader.readexactly(5), 10) == b"hello"


def new_key(actor: Actor, name: str = "laptop") -> tuple[asyncssh.SSHKey, SSHKey]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    return key, ssh_keys.add(actor, name, key.export_public_key().decode())


@asynccontextmanager
async def staged(cast: Cast) -> AsyncIterator[Stage]:
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    workspace = await in_thread(make_workspace)(cast, cast.bob, host="127.0.0.1", ssh_port=upstream.port)
    made = {
        name: await in_thread(new_key)(getattr(cast, name)) for name in ("alice", "bob", "carol", "victor")
    }
    keys = {name: key for name, (key, _row) in made.items()}
    host_key = await in_thread(ready_key)("")
    async with jump("127.0.0.1", 0, host_key) as listening:
        port = listening.sockets[0].getsockname()[1]
        rows = {name: row for name, (_key, row) in made.items()}
        yield Stage(cast, upstream, workspace, port, host_key, keys, rows)
    server.close()
    await in_thread(connections.close_all)()


async def says(*words: str, given: bytes = b"") -> str:
    """Run a program; return what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(given), 30)
    assert process.returncode == 0, err.decode()
    return out.decode()

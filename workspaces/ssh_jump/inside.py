"""Ask a workspace without Jupyter what runs there, by SSH: with its own host key, which may do nothing else there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import asyncssh

from workspaces.state.inside import MOST_BYTES, MOST_SECONDS, Inside, parse


@dataclass(frozen=True)
class Host:
    """A workspace's SSH server and user, and both halves of its host key."""

    host: str
    port: int
    username: str
    public_key: str
    private_key: str = field(repr=False)


async def ask(at: Host, text: str = "") -> Inside | None:
    """Return what runs there, after the text was written into its terminals. None: no answer, or none that holds."""
    try:
        async with asyncio.timeout(MOST_SECONDS):
            return parse(await _told(at, text), of_jupyter=False)
    except (OSError, asyncssh.Error, TimeoutError, ValueError):
        return None


async def _told(at: Host, text: str) -> bytes:
    known = asyncssh.import_public_key(at.public_key)
    async with asyncssh.connect(
        at.host,
        at.port,
        username=at.username,
        client_keys=[asyncssh.import_private_key(at.private_key)],
        known_hosts=([known], [], []),
        server_host_key_algs=["ssh-ed25519"],
        preferred_auth="publickey",
        agent_path=None,
        config=None,
    ) as connection:
        process = await connection.create_process("status", encoding=None)
        process.stdin.write(text.encode())
        process.stdin.write_eof()
        told = b""
        while len(told) <= MOST_BYTES and (piece := await process.stdout.read(MOST_BYTES)):
            told += piece
        return told

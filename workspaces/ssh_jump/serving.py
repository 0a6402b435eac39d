"""Listen and accept connections. asyncssh speaks the protocol; limits on strangers and slow readers are added here."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakSet

import asyncssh

from vitals import pulse

from . import limits
from .guest import Guest

log = logging.getLogger(__name__)

KEEPALIVE_SECONDS = 30
KEEPALIVES_MISSED = 3
WIRE_BYTES = 256 * 1024  # of one connection, waiting to be sent

# Algorithms that are not broken. Compression would let small messages grow large here.
ALGORITHMS: dict[str, Any] = {
    "encryption_algs": [
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        "chacha20-poly1305@openssh.com",
        "aes256-ctr",
    ],
    "compression_algs": None,
}


class Connection(asyncssh.SSHServerConnection):
    """Connection with limits: asyncssh's own would take all that a stranger sends, and keep all that nobody reads."""

    _wire: asyncio.Transport
    _received_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._wire = transport
        transport.set_write_buffer_limits(high=WIRE_BYTES)
        super().connection_made(transport)

    @property
    def guest(self) -> Guest | None:
        owner = self.get_owner()
        return owner if isinstance(owner, Guest) else None

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        guest = self.guest
        if guest is not None and not guest.is_signed_in:
            self._received_bytes += len(data)
            if self._received_bytes > limits.BYTES_BEFORE_LOGIN:
                self.abort()
                return
        super().data_received(data, datatype)

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read: no new request of theirs is answered."""
        self._wire.pause_reading()
        if self.guest is not None:
            self.guest.stalled(True)

    def resume_writing(self) -> None:
        self._wire.resume_reading()
        if self.guest is not None:
            self.guest.stalled(False)


@asynccontextmanager
async def jump(host: str, port: int, key: asyncssh.SSHKey) -> AsyncIterator[asyncio.Server]:
    """Run a jump until the context is left."""
    asyncssh.set_log_level(logging.WARNING)  # it would log the names that strangers type
    house, here = limits.House(), WeakSet[Connection]()
    options = asyncssh.SSHServerConnectionOptions(
        config=None,
        server_factory=lambda: Guest(house),
        server_version="Berth",
        server_host_keys=[key],
        allow_pty=False,
        agent_forwarding=False,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_auth=False,
        gss_kex=False,
        login_timeout=limits.LOGIN_SECONDS,
        keepalive_interval=KEEPALIVE_SECONDS,
        keepalive_count_max=KEEPALIVES_MISSED,
        **ALGORITHMS,
    )
    loop = asyncio.get_running_loop()

    def connection() -> Connection:
        made = Connection(loop, options)
        here.add(made)
        return made

    server = await loop.create_server(connection, host or None, port, backlog=128)
    try:
        yield server
    finally:
        server.close()
        leaving = list(here)
        guests = [each.guest for each in leaving if each.guest is not None]
        for each in leaving:
            each.disconnect(asyncssh.DISC_BY_APPLICATION, "Berth stops. Connect again in a moment.")
        await asyncio.gather(*(each.wait_closed() for each in leaving))
        await asyncio.gather(*(guest.gone() for guest in guests))


async def serve(host: str, port: int, key: asyncssh.SSHKey) -> None:
    """Serve until SIGTERM or SIGINT."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    # asyncio logs each write to a client that has just left, hundreds at a time.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with jump(host, port, key) as server, pulse.beating("ssh-jump"):
        log.info("the SSH jump listens on %s", ", ".join(str(s.getsockname()[:2]) for s in server.sockets))
        await stopped.wait()

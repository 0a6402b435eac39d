"""Berth's web process inside the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from uvicorn.server import ServerState

from portal.asgi import application
from tests.shared.sockets import until
from workspaces.gateway import upstream


@asynccontextmanager
async def berth() -> AsyncIterator[int]:
    """Run Berth in a uvicorn without its clock, which only checks ten times a second whether to end."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="warning", lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listening])
    await server.on_tick(0)  # its headers
    try:
        yield int(listening.getsockname()[1])
    finally:
        for accepting in server.servers:
            accepting.close()
        await ended(server.server_state)
        await upstream.close()


async def ended(state: ServerState) -> None:
    """Wait until nobody is served any more, since the browser is gone; cut off what is left after a second."""
    for connection in list(state.connections):
        connection.shutdown()
    with suppress(TimeoutError):
        await until("nobody is served", lambda: not state.connections and not state.tasks, seconds=1)
    for task in list(state.tasks):
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)

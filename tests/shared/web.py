"""Berth's web process inside the test's own event loop, or in a thread."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from queue import Queue
from threading import Thread

import uvicorn
from asgiref.sync import sync_to_async
from django.db import connections
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


@contextmanager
def berth_in_a_thread() -> Iterator[str]:
    """Run Berth in a thread, for tests that are not asynchronous. Yield its address."""
    running: Queue[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Queue()

    async def serve() -> None:
        over = asyncio.Event()
        async with berth() as port:
            running.put((port, asyncio.get_running_loop(), over))
            await over.wait()
        await sync_to_async(connections.close_all)()

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    port, loop, over = running.get(timeout=60)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()

"""Browsers that listen to a workspace; when cut off, they reconnect with the number of their last event."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.proof.life.records import Heard

GONE_FOR_GOOD = 4404
BACK_AFTER_SECONDS = 0.3
CLOSED_SECONDS = 120  # each socket waits ten seconds for a server that does not answer its close


class Sockets:
    """Sockets of all people, on one event loop in its own thread."""

    def __init__(self, address: str) -> None:
        self.address = address.replace("http", "ws")
        self.heard: list[Heard] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(CLOSED_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSED_SECONDS)

    async def _cancel(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def listen(
        self, who: str, workspace: str, ticket: Callable[[], str | None], leaves_after: float | None
    ) -> None:
        """Listen to a workspace until the end of the day, or for `leaves_after` seconds."""
        heard = Heard(who, workspace, stayed=leaves_after is None)
        self.heard.append(heard)
        asyncio.run_coroutine_threadsafe(self._listen(heard, ticket, leaves_after), self._loop)

    async def _listen(
        self, heard: Heard, ticket: Callable[[], str | None], leaves_after: float | None
    ) -> None:
        try:
            async with asyncio.timeout(leaves_after):
                while heard.refused is None:
                    if token := await asyncio.to_thread(ticket):
                        await self._connection(heard, token)
                    await asyncio.sleep(BACK_AFTER_SECONDS)
        except TimeoutError:
            pass

    async def _connection(self, heard: Heard, token: str) -> None:
        after = heard.events[-1]["id"] if heard.events else 0
        try:
            async with connect(
                f"{self.address}/ws/workspaces/{heard.workspace}/?after={after}&token={token}",
                open_timeout=30,
            ) as socket:
                heard.connections += 1
                async for frame in socket:
                    message = json.loads(frame)
                    if message["type"] == "event":
                        heard.events.append(message["event"])
        except (OSError, InvalidHandshake, TimeoutError):
            pass
        except ConnectionClosed as closed:
            if closed.rcvd is not None and closed.rcvd.code == GONE_FOR_GOOD:
                heard.refused = GONE_FOR_GOOD

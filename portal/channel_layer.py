"""Channel layer over PostgreSQL NOTIFY: groups live in each web process, only a group's message crosses processes.

A message carries ids; the row is the truth. Messages may be lost when a connection drops; then `resync` makes every
consumer read its rows again.

Channels' own in-memory layer scans all members of all groups for each message that somebody receives, and forgets
members after a day. Here a member stays until it leaves, and a message costs only its own group's members.
"""

import asyncio
import json
import logging
import secrets
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import psycopg
from asgiref.sync import sync_to_async
from channels.layers import BaseChannelLayer
from django.db import connections

log = logging.getLogger(__name__)

NOTIFY_CHANNEL = "berth_live"
LIMIT_BYTES = 7900  # PostgreSQL refuses a payload of 8000 bytes or more
SHORTEST_DELAY_SECONDS = 0.1
LONGEST_DELAY_SECONDS = 5.0


def connection_parameters() -> dict[str, Any]:
    """Parameters for a psycopg connection separate from Django's."""
    parameters = connections["default"].get_connection_params()
    return {k: v for k, v in parameters.items() if k not in ("cursor_factory", "context", "pool")}


class NotifyLayer(BaseChannelLayer):  # type: ignore[misc]
    """A channel layer whose groups reach every process connected to the same database."""

    extensions = ("groups",)
    _listener: asyncio.Task[None] | None = None
    _listening: asyncio.Event
    _delay_seconds = SHORTEST_DELAY_SECONDS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._members: defaultdict[str, set[str]] = defaultdict(set)
        self._joined: defaultdict[str, set[str]] = defaultdict(set)
        self._queues: dict[str, asyncio.Queue[dict[str, Any]]] = {}

    def publish(self, groups: Iterable[str], message: dict[str, Any]) -> None:
        """Send from synchronous code: delivered when the caller's transaction commits, never on rollback."""
        payloads = [json.dumps([group, message], separators=(",", ":")) for group in groups]
        if any(len(payload.encode()) > LIMIT_BYTES for payload in payloads):
            raise ValueError("too large for a notification: send an id and let the reader read the row")
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, unnest(%s::text[]))", [NOTIFY_CHANNEL, payloads])

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        await sync_to_async(self.publish)([group], message)

    async def group_add(self, group: str, channel: str) -> None:
        if self._listener is None or self._listener.done():
            self._listening = asyncio.Event()
            self._listener = asyncio.create_task(self._listen())
        # No await after this one: if the channel leaves meanwhile, it has joined completely or not at all.
        async with asyncio.timeout(10):
            await self._listening.wait()
        self._members[group].add(channel)
        self._joined[channel].add(group)

    async def group_discard(self, group: str, channel: str) -> None:
        self._discard(group, channel)

    def leave(self, channel: str) -> None:
        """Remove the channel from all its groups. Otherwise it would get messages for ever that nobody reads."""
        for group in list(self._joined.get(channel, ())):
            self._discard(group, channel)

    def _discard(self, group: str, channel: str) -> None:
        self._members[group].discard(channel)
        if not self._members[group]:
            del self._members[group]
        self._joined[channel].discard(group)
        if not self._joined[channel]:
            del self._joined[channel]
            self._queues.pop(channel, None)  # without groups it gets no more messages

    async def new_channel(self, prefix: str = "specific") -> str:
        return f"{prefix}.berth!{secrets.token_hex(8)}"

    async def receive(self, channel: str) -> dict[str, Any]:
        queue = self._queue(channel)
        try:
            return await queue.get()
        finally:
            if queue.empty():
                self._queues.pop(channel, None)

    def _queue(self, channel: str) -> asyncio.Queue[dict[str, Any]]:
        return self._queues.setdefault(channel, asyncio.Queue(self.capacity))

    def _hand_out(self, group: str, message: dict[str, Any]) -> None:
        for channel in self._members.get(group, ()):
            with suppress(asyncio.QueueFull):
                self._queue(channel).put_nowait(message)

    async def _listen(self) -> None:
        while True:
            try:
                await self._deliver()
            except psycopg.Error as error:
                name, delay = type(error).__name__, self._delay_seconds
                log.warning("lost the live-event connection (%s), again in %.1f s", name, delay)
            await asyncio.sleep(self._delay_seconds)
            self._delay_seconds = min(self._delay_seconds * 2, LONGEST_DELAY_SECONDS)

    async def _deliver(self) -> None:
        parameters = connection_parameters()
        async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as connection:
            await connection.execute(f"LISTEN {NOTIFY_CHANNEL}")
            if self._listening.is_set():
                self._resync()
            self._listening.set()
            self._delay_seconds = SHORTEST_DELAY_SECONDS
            async for notification in connection.notifies():
                group, message = json.loads(notification.payload)
                self._hand_out(group, message)

    def _resync(self) -> None:
        for group in self._members:
            self._hand_out(group, {"type": "resync"})

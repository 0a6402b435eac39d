"""Guests, looked up in the database at most every two seconds per pass: one page makes a hundred requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import InterfaceError, OperationalError

from .passes import Guest, admitted

TRUSTED_SECONDS = 2.0
MOST_KNOWN = 10_000
LONGEST_SECRET = 80
# Long answers and sockets are checked again: no signal reports a session that expires.
STREAM_RECHECK_SECONDS = 5.0
SOCKET_RECHECK_SECONDS = 60.0
# Requests and sockets of one workspace, and of all workspaces of one person, in this process.
MOST_AT_ONCE = 512
MOST_OF_PERSON = 768

Key = tuple[str, UUID]
_known: dict[Key, tuple[float, Guest | None]] = {}
_under_way: Counter[UUID] = Counter()
_ask: Callable[[str, UUID], Any] = database_sync_to_async(admitted)


class Crowded(Exception):
    """Too many requests of one workspace or person: others would suffer."""


@contextmanager
def place(workspace_id: UUID, person_id: UUID) -> Iterator[None]:
    if _under_way[workspace_id] >= MOST_AT_ONCE or _under_way[person_id] >= MOST_OF_PERSON:
        raise Crowded
    _under_way.update((workspace_id, person_id))
    try:
        yield
    finally:
        _under_way.subtract((workspace_id, person_id))
        for key in (workspace_id, person_id):
            if not _under_way[key]:
                del _under_way[key]


async def guest_of(secret: str, workspace_id: UUID) -> Guest | None:
    if len(secret) > LONGEST_SECRET:  # no secret of ours: not kept in memory
        return None
    key = secret, workspace_id
    asked_at, guest = _known.get(key, (0.0, None))
    if time.monotonic() - asked_at > TRUSTED_SECONDS:
        guest = await _ask(secret, workspace_id)
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = time.monotonic(), guest
    return guest


async def until_changed(secret: str, workspace_id: UUID, guest: Guest) -> None:
    """Return when the guest loses access or another run answers. For long answers."""
    while True:
        await asyncio.sleep(STREAM_RECHECK_SECONDS)
        with suppress(OperationalError, InterfaceError):  # nothing changes while the database is away
            if await guest_of(secret, workspace_id) != guest:
                return


async def until_shown_out(secret: str, workspace_id: UUID, guest: Guest) -> None:
    """Return when the guest loses access: signed out, deactivated, removed from the tenant."""
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(f"user.{guest.user_id}", channel)
    try:
        while await _ask(secret, workspace_id) is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(layer.receive(channel), SOCKET_RECHECK_SECONDS)
    finally:
        _known.pop((secret, workspace_id), None)  # what a request knew from before is over, too
        layer.leave(channel)

"""Guests, looked up in the database at most every second per pass: one page makes a hundred requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import InterfaceError, OperationalError

from workspaces.state import declared

from .hosts import Site
from .passes import Guest, admitted

TRUSTED_SECONDS = 1.0
MOST_KNOWN = 10_000
LONGEST_SECRET = 80
# Longer answers listen for the end of the right, too; a page's hundred short ones do not.
LISTEN_AFTER_SECONDS = 0.5
# Long answers and sockets are checked again: no signal reports a session that expires.
STREAM_RECHECK_SECONDS = 5.0
SOCKET_RECHECK_SECONDS = 60.0
# Requests and sockets of one site, and of all sites that one person uses, in this process.
MOST_AT_ONCE = 512
MOST_OF_PERSON = 768

Key = tuple[str, Site]
_known: dict[Key, tuple[float, Guest | None]] = {}
_under_way: Counter[UUID | Site] = Counter()
_ask: Callable[[str, Site], Any] = database_sync_to_async(admitted)


class Crowded(Exception):
    """Too many requests of one site or person: others would suffer."""


@contextmanager
def place(site: Site, person_id: UUID) -> Iterator[None]:
    if _under_way[site] >= MOST_AT_ONCE or _under_way[person_id] >= MOST_OF_PERSON:
        raise Crowded
    _under_way.update((site, person_id))
    try:
        yield
    finally:
        _under_way.subtract((site, person_id))
        for key in (site, person_id):
            if not _under_way[key]:
                del _under_way[key]


async def guest_of(secret: str, site: Site) -> Guest | None:
    if len(secret) > LONGEST_SECRET:  # no secret of ours: not kept in memory
        return None
    key = secret, site
    asked_at, guest = _known.get(key, (0.0, None))
    if time.monotonic() - asked_at > TRUSTED_SECONDS:
        guest = await _ask(secret, site)
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = time.monotonic(), guest
    return guest


async def until_changed(secret: str, site: Site, guest: Guest) -> None:
    """Return when the guest loses access or another run answers. For long answers."""
    await asyncio.sleep(min(LISTEN_AFTER_SECONDS, STREAM_RECHECK_SECONDS))
    async with _heard(site, guest) as wait:
        while True:
            with suppress(OperationalError, InterfaceError):  # nothing changes while the database is away
                if await _ask(secret, site) != guest:
                    _known.pop((secret, site), None)
                    return
            await wait(STREAM_RECHECK_SECONDS)


async def until_shown_out(secret: str, site: Site, guest: Guest) -> None:
    """Return when the guest loses access: signed out, deactivated, removed from the tenant, the app not shared."""
    try:
        async with _heard(site, guest) as wait:
            while await _ask(secret, site) is not None:
                await wait(SOCKET_RECHECK_SECONDS)
    finally:
        _known.pop((secret, site), None)  # what a request knew from before is over, too


@asynccontextmanager
async def _heard(site: Site, guest: Guest) -> AsyncIterator[Callable[[float], Awaitable[None]]]:
    """Yield a function that waits until access to the site may have changed, so many seconds at most."""
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    groups = {f"user.{guest.user_id}", f"user.{guest.owner_id}"}  # what its owner loses, all guests lose
    if site.port is not None:
        groups.add(declared.group(site.workspace_id))
    for group in groups:
        await layer.group_add(group, channel)

    async def wait(seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(layer.receive(channel), seconds)

    try:
        yield wait
    finally:
        layer.leave(channel)

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
# Of these, what one visitor of a shared app can take: others want in, too.
MOST_OF_VISITOR = MOST_AT_ONCE // 8

Key = tuple[str, Site]
_known: dict[Key, tuple[float, Guest | None]] = {}
_asking: dict[Key, tuple[float, asyncio.Task[Guest | None]]] = {}
_under_way: Counter[UUID | Site | tuple[Site, UUID]] = Counter()
_ask: Callable[[str, Site], Any] = database_sync_to_async(admitted)


class Crowded(Exception):
    """Too many requests of one site or person: others would suffer."""


@contextmanager
def place(site: Site, guest: Guest) -> Iterator[None]:
    """Take a place for a request or socket. Raise Crowded if the site or the person has none left."""
    most: dict[UUID | Site | tuple[Site, UUID], int] = {site: MOST_AT_ONCE, guest.user_id: MOST_OF_PERSON}
    if guest.owner_id not in (None, guest.user_id):
        most[site, guest.user_id] = MOST_OF_VISITOR
    if any(_under_way[key] >= limit for key, limit in most.items()):
        raise Crowded
    _under_way.update(most.keys())
    try:
        yield
    finally:
        _under_way.subtract(most.keys())
        for key in most:
            if not _under_way[key]:
                del _under_way[key]


async def guest_of(secret: str, site: Site, *, not_before: float | None = None) -> Guest | None:
    """Return whom the secret lets in, as the database said at most a second ago, or since `not_before`.

    All who ask for the same at once share one look.
    """
    if len(secret) > LONGEST_SECRET:  # no secret of ours: not kept in memory
        return None
    key, since = (secret, site), time.monotonic() - TRUSTED_SECONDS if not_before is None else not_before
    while (known := _known.get(key)) is None or known[0] < since:
        begun, look = _asking.get(key, (0.0, None))
        if look is None:
            begun = time.monotonic()
            look = asyncio.create_task(_look(key))
            look.add_done_callback(_heed)
            _asking[key] = begun, look
        guest = await asyncio.shield(look)  # another may wait for it, too
        if begun >= since:
            return guest
    return known[1]


async def _look(key: Key) -> Guest | None:
    begun = time.monotonic()
    try:
        guest: Guest | None = await _ask(*key)
    finally:
        _asking.pop(key, None)
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[key] = begun, guest
    return guest


def _heed(look: asyncio.Task[Guest | None]) -> None:
    """Take note of a fault although nobody waits for it any more."""
    if not look.cancelled():
        look.exception()


async def until_changed(secret: str, site: Site, guest: Guest) -> None:
    """Return when the guest loses access or another run answers. For long answers."""
    await asyncio.sleep(min(LISTEN_AFTER_SECONDS, STREAM_RECHECK_SECONDS))
    async with _heard(site, guest) as wait:
        changed_at: float | None = time.monotonic()  # nothing was heard before
        while True:
            with suppress(OperationalError, InterfaceError):  # nothing changes while the database is away
                if await guest_of(secret, site, not_before=changed_at) != guest:
                    _known.pop((secret, site), None)
                    return
            changed_at = await wait(STREAM_RECHECK_SECONDS)


async def until_shown_out(secret: str, site: Site, guest: Guest) -> None:
    """Return when the guest loses access: signed out, deactivated, removed from the tenant, the app not shared."""
    try:
        async with _heard(site, guest) as wait:
            changed_at: float | None = time.monotonic()
            while await guest_of(secret, site, not_before=changed_at) is not None:
                changed_at = await wait(SOCKET_RECHECK_SECONDS)
    finally:
        _known.pop((secret, site), None)  # what a request knew from before is over, too


@asynccontextmanager
async def _heard(site: Site, guest: Guest) -> AsyncIterator[Callable[[float], Awaitable[float | None]]]:
    """Yield a function that waits until access to the site may have changed, so many seconds at most.

    It returns when it heard of a change, by the monotonic clock; None if it heard of none.
    """
    layer: Any = get_channel_layer()
    channel = await layer.new_channel()
    groups = {f"user.{guest.user_id}", f"user.{guest.owner_id}"}  # what its owner loses, all guests lose
    if site.port is not None:
        groups.add(declared.group(site.workspace_id))
    for group in groups:
        await layer.group_add(group, channel)

    async def wait(seconds: float) -> float | None:
        try:
            await asyncio.wait_for(layer.receive(channel), seconds)
        except TimeoutError:
            return None
        return time.monotonic()

    try:
        yield wait
    finally:
        layer.leave(channel)

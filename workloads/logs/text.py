"""Logs as text: the last lines, followed for a while, or all of them as a file. No thread waits for a line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.utils.translation import gettext as _

from accounts.errors import TooMany
from accounts.places import Places
from workloads.figures import moment

from .reading import Shown, Wanted, page
from .store import group_of
from .tailing import Tail

RECHECK_SECONDS = 1.5
MOST_OF_PERSON = 6  # readers of text, in this process
RETRY_SECONDS = 10
LARGEST_ANSWER_BYTES = 64 * 2**20
PAGE = 500

_readers = Places(MOST_OF_PERSON)


class Text:
    """An answer in text that counts for its person until it is closed."""

    def __init__(self, person_id: UUID, parts: AsyncIterator[str]) -> None:
        if not _readers.take(person_id):
            raise TooMany(
                "too_many_log_readers",
                _("You read %(count)d logs already, as many as one person may.") % {"count": MOST_OF_PERSON},
                _("Close one of them, and try again."),
                retry_after_seconds=RETRY_SECONDS,
            )
        self._person_id: UUID | None = person_id
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[str]:
        size = 0
        try:
            async for part in self._parts:
                size += len(part)
                if size > LARGEST_ANSWER_BYTES:
                    yield _cut_short()
                    return
                yield part
        finally:
            self.close()

    def close(self) -> None:
        if self._person_id is None:
            return
        _readers.give_back(self._person_id)
        self._person_id = None


async def followed(
    tail: Tail,
    holder_id: UUID,
    first: Iterable[Shown],
    *,
    seconds: float,
    may_go_on: Callable[[], Awaitable[bool]],
) -> AsyncIterator[str]:
    """Yield the first lines, then those that are stored within so many seconds. Ends when access does."""
    loop = asyncio.get_running_loop()
    layer = get_channel_layer()
    channel = await layer.new_channel("log")
    until, check_at = loop.time() + seconds, loop.time() + RECHECK_SECONDS
    try:
        await layer.group_add(group_of(holder_id), channel)
        yield _plain(first)
        while loop.time() < until:
            while lines := await database_sync_to_async(tail.more)():
                yield _plain(lines)
            with suppress(TimeoutError):
                await asyncio.wait_for(layer.receive(channel), min(check_at, until) - loop.time())
            if loop.time() >= check_at:
                if not await may_go_on():
                    return
                check_at = loop.time() + RECHECK_SECONDS
    finally:
        layer.leave(channel)


async def once(lines: Iterable[Shown]) -> AsyncIterator[str]:
    yield _plain(lines)


async def whole(wanted: Wanted) -> AsyncIterator[str]:
    """Yield all wanted lines, page by page, with their times, and of a job with part and attempt."""
    after = None
    while True:
        found = await database_sync_to_async(page)(wanted, after, PAGE)
        yield "".join(f"{_stamp(line)} {line.text}\n" for line in found.lines)
        if found.following is None:
            return
        after = found.following


def _plain(lines: Iterable[Shown]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def _stamp(line: Shown) -> str:
    return f"{moment(line.at)} {line.index}/{line.attempt}" if line.attempt else str(moment(line.at))


def _cut_short() -> str:
    most = LARGEST_ANSWER_BYTES // 2**20
    return _("[Berth: this answer ends here, at %(most)d MiB. Ask for fewer lines.]") % {"most": most} + "\n"

"""A process says every few seconds that it lives, what it has at the moment, and what it counted since.

Who has a loop that everything depends on beats from there (`Pulse.step`), so that a loop that hangs is silent; who
waits for work beats from a thread beside it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.db.models import Min
from django.db.models.functions import Now
from django.utils import timezone

from vitals import figures
from vitals.clock import about
from vitals.models import Process

logger = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
# Three beats may be late or lost to a busy machine before anybody is called dead.
SILENT_AFTER_SECONDS = 20.0
SILENT_AFTER = timedelta(seconds=SILENT_AFTER_SECONDS)
# Until then it is told for how long a part is silent.
FORGOTTEN_AFTER = timedelta(days=1)


class Pulse:
    """The first beat comes at once."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._next = 0.0
        self._away = False

    def step(self) -> None:
        """Beat and write if it is time. A database that is away misses a beat, and no figure."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + BEAT_SECONDS
        try:
            close_old_connections()
            beat(self._part)
            figures.write()
            close_old_connections()
            self._away = False
        except (DatabaseError, InterfaceError) as error:
            connection.close()
            if not self._away:
                logger.warning("no sign of life of the %s, the database is away: %s", self._part, error)
            self._away = True


def beat(part: str) -> None:
    """Write that this process was heard just now."""
    me = Process(
        part=part,
        host=socket.gethostname(),
        pid=os.getpid(),
        seen_at=Now(),
        since=heard_since(part),
        gauges=figures.gauges(),
    )
    Process.objects.bulk_create(
        [me],
        update_conflicts=True,
        unique_fields=["part", "host", "pid"],
        update_fields=["seen_at", "since", "gauges"],
    )


def heard_since(part: str) -> datetime:
    """Since when one process of the part or another was heard, without a break; now, where none is."""
    recent = Process.objects.filter(about("seen_at", Now(), SILENT_AFTER), part=part)
    since: datetime | None = recent.aggregate(since=Min("since"))["since"]
    return since or timezone.now()


def forget_gone(**_: object) -> None:
    """Workers are renewed all day long, each under a number of its own."""
    Process.objects.exclude(about("seen_at", Now(), FORGOTTEN_AFTER)).delete()


def forget_here() -> None:
    """Nothing of this machine runs: its signs of life are an earlier run's."""
    Process.objects.filter(host=socket.gethostname()).delete()


def beat_beside(part: str) -> None:
    """From a thread, as long as this process lives."""
    threading.Thread(target=_beat_for_ever, args=(Pulse(part),), name=f"pulse of {part}", daemon=True).start()


def _beat_for_ever(pulse: Pulse) -> None:
    while True:
        pulse.step()
        time.sleep(BEAT_SECONDS)


@asynccontextmanager
async def beating(part: str) -> AsyncIterator[None]:
    """From the event loop, as long as this context lasts and no longer: a loop that hangs is silent."""
    over = asyncio.Event()
    task = asyncio.create_task(_beat_in_loop(Pulse(part), over))
    try:
        yield
    finally:
        over.set()
        await task


async def _beat_in_loop(pulse: Pulse, over: asyncio.Event) -> None:
    while not over.is_set():
        await asyncio.to_thread(pulse.step)
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), BEAT_SECONDS)

"""Signs of life: each process reports every few seconds that it lives, its gauges, and its new counts.

A process whose work depends on one loop beats from that loop (`Pulse.step`), so that it is silent if the loop hangs. A
process that waits for work beats from a separate thread.
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
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.db.models import Min
from django.db.models.functions import Now
from django.utils import timezone

from vitals import figures
from vitals.clock import is_near_now
from vitals.models import Process
from vitals.release import RELEASE

logger = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
# On a busy machine three beats may be late or lost before a process counts as dead.
SILENT_AFTER_SECONDS = 20.0
SILENT_AFTER = timedelta(seconds=SILENT_AFTER_SECONDS)
# Until then, health pages can show for how long a part has been silent.
FORGOTTEN_AFTER = timedelta(days=1)


class Pulse:
    """Beats of one process; the first comes at once."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._next = 0.0
        self._away = False

    def step(self) -> None:
        """Beat and write if it is time. If the database is away, the beat is lost, but no count."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + BEAT_SECONDS
        show_life()
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


def show_life() -> None:
    """Touch the file by which a probe of Kubernetes sees that this process does not hang (BERTH_SIGN_OF_LIFE)."""
    if settings.SIGN_OF_LIFE:
        Path(settings.SIGN_OF_LIFE).touch()


def show_begin() -> None:
    """Touch the file that says that this part waits for nothing any more and begins its work."""
    if settings.SIGN_OF_LIFE:
        Path(f"{settings.SIGN_OF_LIFE}.begun").touch()


def beat(part: str) -> None:
    """Write that this process was heard just now."""
    me = Process(
        part=part,
        host=socket.gethostname(),
        pid=os.getpid(),
        seen_at=Now(),
        since=heard_since(part),
        gauges=figures.gauges(),
        release=RELEASE,
    )
    Process.objects.bulk_create(
        [me],
        update_conflicts=True,
        unique_fields=["part", "host", "pid"],
        update_fields=["seen_at", "since", "gauges", "release"],
    )


def heard_since(part: str) -> datetime:
    """Time since when some process of the part was heard without a break; now, if none is."""
    recent = Process.objects.filter(is_near_now("seen_at", Now(), SILENT_AFTER), part=part)
    since: datetime | None = recent.aggregate(since=Min("since"))["since"]
    return since or timezone.now()


def forget_gone(**_: object) -> None:
    """Delete processes not heard for a day: workers are replaced all day long, each with a new pid."""
    Process.objects.exclude(is_near_now("seen_at", Now(), FORGOTTEN_AFTER)).delete()


def forget_here() -> None:
    """Delete all processes of this machine. Call it when none runs: the rows are an earlier run's."""
    Process.objects.filter(host=socket.gethostname()).delete()


def beat_beside(part: str) -> None:
    """Beat from a thread as long as this process lives."""
    pulse = Pulse(part)

    def beat_for_ever() -> None:
        while True:
            pulse.step()
            time.sleep(BEAT_SECONDS)

    threading.Thread(target=beat_for_ever, name=f"pulse of {part}", daemon=True).start()


@asynccontextmanager
async def beating(part: str) -> AsyncIterator[None]:
    """Beat from the event loop while the context lasts, so that a loop that hangs is silent."""
    pulse, over = Pulse(part), asyncio.Event()

    async def beat_until_over() -> None:
        while not over.is_set():
            await asyncio.to_thread(pulse.step)
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), BEAT_SECONDS)

    task = asyncio.create_task(beat_until_over())
    try:
        yield
    finally:
        over.set()
        await task

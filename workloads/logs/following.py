"""Following of one container's log: read, gathered until it is stored, read again after a cut, until its pod ended.

All of it runs in the collector's event loop. A log that waits to be stored is not read on, so memory is bounded by the
number of logs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from clusters.errors import ClusterError, ClusterRefused, StreamSilent
from clusters.log_streams import LogStreams
from clusters.watch.watching import Backoff

from .intake import LONGEST_LINE_BYTES, SECOND, Intake, Stored, since_ns
from .sources import Pod
from .store import Batch

log = logging.getLogger(__name__)

# Bytes that wait to be stored, of one log; it is read on when they are.
MOST_WAITING_BYTES = 128 * 2**10
# Words that are not told by the watch yet are waited for so long.
PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 15.0
NO_SOURCE_SECONDS = 5.0
GONE, NOT_STARTED = 404, 400


@dataclass
class Known:
    """Stored state of a log: its row, its last line, and the lines that the server would send again."""

    stream: int
    lines: int
    last_ns: int
    has_ended: bool
    stored: Stored


# Returns what is known of a pod's log, whose row is made if it is missing; None: nobody knows the pod.
Recall = Callable[[Pod], Awaitable[Known | None]]


class Following:
    """Log of one pod's container. `hurry` asks for lines to be stored soon."""

    def __init__(self, pod: Pod, streams: LogStreams, recall: Recall, hurry: Callable[[], None]) -> None:
        self.pod, self._streams, self._recall, self._hurry = pod, streams, recall, hurry
        self._heard, self._emptied = asyncio.Event(), asyncio.Event()
        self._known: Known | None = None
        self._intake = Intake(Stored((), 0, 0))
        self._in_flight: Batch | None = None
        self._restarts_read = 0
        self._is_over = False  # all is read: what waits is the rest
        self.is_done = False
        self.task: asyncio.Task[None] | None = None

    # --- what the watch and the store tell

    def start(self) -> None:
        self.task = asyncio.create_task(self._follow(), name=f"log of {self.pod.namespace}/{self.pod.name}")

    def hear(self, pod: Pod) -> None:
        self.pod = pod
        self._heard.set()

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def batch(self) -> Batch | None:
        """Return what is to be stored, until `kept` or `forget` answers it; None: nothing is."""
        if self._known is None or self.is_done:
            return None
        if self._in_flight is None:
            is_last = self._is_over
            if not self._intake.entries and not self._intake.dropped and not is_last:
                return None
            entries, dropped, until_ns = self._intake.hand_over()
            self._in_flight = Batch(
                self._known.stream, self._known.lines, entries, dropped, until_ns, has_ended=is_last
            )
        return self._in_flight

    def kept(self, batch: Batch) -> None:
        assert self._known is not None
        self._known.lines += len(batch.entries)
        self._in_flight, self.is_done = None, batch.has_ended
        self._emptied.set()

    def forget(self) -> None:
        """Begin anew from the rows: another collector stored lines meanwhile."""
        self.stop()
        self._in_flight, self._known, self._is_over = None, None, False
        self._intake = Intake(Stored((), 0, 0))
        self.start()

    # --- reading

    async def _follow(self) -> None:
        backoff = Backoff(shortest_seconds=PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS)
        while not self._is_over:
            try:
                if await self._read_on():
                    backoff.reset()
                await self._wait(PAUSE_SECONDS)
            except StreamSilent:
                continue
            except ClusterRefused as refusal:
                if refusal.status == GONE:
                    self._end()
                elif refusal.status == NOT_STARTED and not self.pod.has_ended:
                    await self._wait(LONGEST_PAUSE_SECONDS)
                elif refusal.status == NOT_STARTED:
                    self._end()  # its container never ran
                else:
                    log.warning("the log of %s: %s", self.pod.name, refusal.message)
                    await asyncio.sleep(backoff.next_seconds())
            except ClusterError as error:
                log.info("the log of %s: %s", self.pod.name, error.message)
                await asyncio.sleep(backoff.next_seconds(at_least_seconds=error.retry_after_seconds or 0))
            except Exception:
                log.exception("a fault with the log of %s", self.pod.name)
                await asyncio.sleep(backoff.next_seconds())

    async def _read_on(self) -> bool:
        """Read until the stream ends, and to the end if the pod has ended. Return False if there was nothing to do."""
        if not (self.pod.has_started or self.pod.has_ended):
            await self._wait(LONGEST_PAUSE_SECONDS)
            return False
        if not await self._begin():
            if not self._is_over:
                await self._wait(NO_SOURCE_SECONDS)
            return False
        has_ended = self.pod.has_ended
        if self.pod.restarts > self._restarts_read:
            await self._read_previous()
        await self._read(follow=not has_ended)
        if has_ended:
            self._end()
        return True

    async def _begin(self) -> bool:
        """Wait until all is stored, and take up from there. Return False if no row knows the pod, or all is read."""
        while self._intake.entries or self._in_flight is not None:
            self._hurry()
            await self._until_emptied()
        known = await self._recall(self.pod)
        if known is None:
            return False
        self._known = known
        if known.has_ended:
            self._is_over = self.is_done = True
            return False
        self._intake.begin(known.stored)
        return True

    async def _read_previous(self) -> None:
        """Read the last lines of the container's run before this one. Kubernetes keeps no earlier ones."""
        restarts = self.pod.restarts
        with suppress(ClusterRefused):  # it is gone
            await self._read(previous=True)
        self._restarts_read = restarts
        self._intake.begin(self._intake.stored)

    async def _read(self, *, follow: bool = False, previous: bool = False) -> None:
        assert self._known is not None
        lines = self._streams.lines(
            self.pod.namespace,
            self.pod.name,
            self.pod.container,
            since_seconds=since_ns(self._known.last_ns) // SECOND,
            follow=follow,
            previous=previous,
            longest_line_bytes=LONGEST_LINE_BYTES,
        )
        async with aclosing(lines):
            async for line in lines:
                self._intake.take(line)
                if self._intake.size >= MOST_WAITING_BYTES:
                    self._hurry()
                    await self._until_emptied()

    async def _until_emptied(self) -> None:
        self._emptied.clear()
        await self._emptied.wait()

    async def _wait(self, seconds: float) -> None:
        """Wait until the watch tells something of the pod, for so long at most."""
        self._heard.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), seconds)

    def _end(self) -> None:
        self._is_over = True
        if self._known is None:
            self.is_done = True
        self._hurry()

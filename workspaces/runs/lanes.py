"""Workspaces that wait for a look, in three lanes; each at most once, however often something happens to it.

1. What a person waits for: a launch, a start, a stop.
2. What must go on: the end of a run, a container that restarts, a deletion.
3. What can wait: periodic looks, labels.

Every fourth time the lane that waits longest comes first, so that no lane starves. One workspace's noise (its events,
its restarts) costs at most one look in two seconds.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable
from enum import IntEnum
from uuid import UUID

PACE_SECONDS = 2.0
OLDEST_FIRST_EVERY = 4


class Lane(IntEnum):
    PERSON = 0
    GOES_ON = 1
    CAN_WAIT = 2


class Lanes:
    """Queue of workspaces. Thread-safe. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._some = threading.Condition()
        self._waiting: tuple[dict[UUID, float], ...] = tuple({} for _ in Lane)  # since when, in order
        self._later: list[tuple[float, UUID, Lane]] = []
        self._due: dict[UUID, float] = {}  # the earliest time in `_later`
        self._in_hand: dict[UUID, Lane | None] = {}  # in which lane it comes again
        self._looked_at: dict[UUID, float] = {}
        self._taken = 0
        self._closed = False

    def add(self, workspace: UUID, lane: Lane, *, after_seconds: float = 0.0) -> None:
        with self._some:
            self._add(workspace, lane, after_seconds)

    def add_all(self, workspaces: Iterable[UUID], lane: Lane) -> None:
        with self._some:
            for workspace in workspaces:
                self._add(workspace, lane, 0.0)

    def add_noise(self, workspace: UUID, lane: Lane) -> None:
        """Add it, but not before its pause is over."""
        with self._some:
            since = self._clock() - self._looked_at.get(workspace, -PACE_SECONDS)
            pause = PACE_SECONDS if workspace in self._in_hand else max(0.0, PACE_SECONDS - since)
            self._add(workspace, lane, pause)

    def _add(self, workspace: UUID, lane: Lane, after_seconds: float) -> None:
        if after_seconds > 0:
            due = self._clock() + after_seconds
            if due < self._due.get(workspace, float("inf")):
                self._due[workspace] = due
                heapq.heappush(self._later, (due, workspace, lane))
                self._some.notify()
            return
        if workspace in self._in_hand:
            again = self._in_hand[workspace]
            self._in_hand[workspace] = lane if again is None else min(again, lane)
            return
        for other in Lane:
            if workspace in self._waiting[other]:
                if other <= lane:
                    return
                del self._waiting[other][workspace]
        self._waiting[lane][workspace] = self._clock()
        self._some.notify()

    def take(self, most: int, *, timeout_seconds: float) -> list[UUID]:
        """Take up to `most` of one lane, and wait for the first. They are in hand until `done`."""
        end = self._clock() + timeout_seconds
        with self._some:
            while not self._closed:
                self._bring_due()
                if (lane := self._next_lane()) is not None:
                    taken = list(self._waiting[lane])[:most]
                    for workspace in taken:
                        del self._waiting[lane][workspace]
                        self._in_hand[workspace] = None
                        self._looked_at[workspace] = self._clock()
                    self._taken += 1
                    return taken
                pause = min(end, self._later[0][0] if self._later else end) - self._clock()
                if end <= self._clock():
                    break
                self._some.wait(max(pause, 0.001))
            return []

    def done(self, workspaces: Iterable[UUID]) -> None:
        """Let go of what was taken. What was added meanwhile waits again."""
        with self._some:
            for workspace in workspaces:
                if (again := self._in_hand.pop(workspace, None)) is not None:
                    self._add(workspace, again, 0.0)
            if len(self._looked_at) > 2 * len(self._in_hand) + 1000:
                old = self._clock() - PACE_SECONDS
                self._looked_at = {one: at for one, at in self._looked_at.items() if at > old}

    def waiting(self) -> list[int]:
        """Return how many wait in each lane."""
        with self._some:
            return [len(lane) for lane in self._waiting]

    def close(self) -> None:
        """Let everybody who waits go; nothing is taken any more."""
        with self._some:
            self._closed = True
            self._some.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def _bring_due(self) -> None:
        while self._later and self._later[0][0] <= self._clock():
            due, workspace, lane = heapq.heappop(self._later)
            if self._due.get(workspace) == due:
                del self._due[workspace]
                self._add(workspace, lane, 0.0)

    def _next_lane(self) -> Lane | None:
        some = [lane for lane in Lane if self._waiting[lane]]
        if not some:
            return None
        if self._taken % OLDEST_FIRST_EVERY == OLDEST_FIRST_EVERY - 1:
            return min(some, key=lambda lane: next(iter(self._waiting[lane].values())))
        return some[0]

"""Places for claims of several members: a gang gets a place for each of them at one time, or none.

For each node it is known how many members fit there from a time on. The gang's start is the first time at which enough
of them fit on all nodes together. It takes as few nodes as that allows. Only nodes that changed are evaluated again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heapreplace
from itertools import chain
from typing import Any

from .state import Room
from .timeline import FOREVER, NodeLine, Nodes, Spot

# Time, whether it holds only after that time, and by how many members more or fewer fit on a node from then on.
Change = tuple[datetime, bool, int]


class Gangs:
    """Finds places for the members of claims on the nodes of a pool."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        # By need and number of members: how many fit in each step of each node, as of a version of it.
        self._counts: dict[Any, dict[str, tuple[int, list[int]]]] = {}
        self._changes: dict[Any, dict[str, tuple[int, list[Change]]]] = {}

    def first_fit(
        self, need: Room, lasts: timedelta | None, members: int, not_before: datetime | None = None
    ) -> Spot | None:
        """Return where all members fit first; None: the nodes could never hold them all.

        If no known end makes them fit, these are the nodes that lack least.
        """
        if members == 1:
            if not_before is None:
                return self.nodes.first_fit(need, lasts)
            return self.nodes.first_fit_from(need, lasts, not_before)
        if not could_hold((line.whole for line in self.nodes.lines), need, members):
            return None
        start = self._first_start(need, lasts, members, not_before or self.nodes.now)
        if start == FOREVER:
            return Spot(_lacking_least(self.nodes.lines, need, members), start)
        return Spot(self._packed(need, lasts, members, start), start)

    def _first_start(
        self, need: Room, lasts: timedelta | None, members: int, not_before: datetime
    ) -> datetime:
        """Return the first time from which enough members fit for `lasts`; FOREVER if unknown."""
        known = self._changes.setdefault((need, lasts, members, not_before), {})
        for line in self.nodes.lines:
            version = self.nodes.version(line)
            if line.name not in known or known[line.name][0] != version:
                counts = self._counts_on(line, need, members)
                known[line.name] = version, list(_changes_on(line, counts, lasts, not_before))
        there = 0
        for time, _is_after, more in sorted(chain.from_iterable(found for _version, found in known.values())):
            there += more
            if there >= members:
                return time
        return FOREVER

    def _counts_on(self, line: NodeLine, need: Room, most: int) -> list[int]:
        known = self._counts.setdefault((need, most), {})
        version = self.nodes.version(line)
        if line.name not in known or known[line.name][0] != version:
            known[line.name] = version, [room.count(need, most) for room in line.rooms]
        return known[line.name][1]

    def fit_from(
        self, line: NodeLine, need: Room, lasts: timedelta | None, most: int, start: datetime
    ) -> int:
        """Return how many members fit on the node, as it is planned, for `lasts` from a time on, up to `most`."""
        return min(self._counts_on(line, need, most)[_steps(line, lasts, start)])

    def _packed(
        self, need: Room, lasts: timedelta | None, members: int, start: datetime
    ) -> tuple[NodeLine, ...]:
        """Return a node for each member: on as few nodes as possible, now on the fullest of equals."""
        now = start == self.nodes.now

        def size(found: tuple[int, NodeLine]) -> tuple[Any, ...]:
            number, line = found
            room = line.rooms[0]
            return (number, room.units, room.cpu_millicores, line.name) if now else (number, line.name)

        fitting = ((self.fit_from(line, need, lasts, members, start), line) for line in self.nodes.lines)
        able = sorted((found for found in fitting if found[0]), key=size)
        chosen: list[NodeLine] = []
        while able:
            left = members - len(chosen)
            at = bisect_left(able, left, key=lambda found: found[0])
            if at < len(able):
                return (*chosen, *[able[at][1]] * left)
            most = able[-1][0]
            number, line = able.pop(bisect_left(able, most, key=lambda found: found[0]))
            chosen += [line] * number
        raise AssertionError("it fits from this time on")


def could_hold(rooms: Iterable[Room], need: Room, members: int) -> bool:
    """Return True if so many members fit in these rooms together."""
    left = members
    for room in rooms:
        left -= room.count(need, left)
        if left <= 0:
            return True
    return False


def fit_from(line: NodeLine, need: Room, lasts: timedelta | None, most: int, start: datetime) -> int:
    """Return how many members fit on the node for `lasts` from a time on, up to `most`."""
    return min(room.count(need, most) for room in line.rooms[_steps(line, lasts, start)])


def _steps(line: NodeLine, lasts: timedelta | None, start: datetime, *, is_after: bool = False) -> slice:
    """Return the steps of a node from a time on, or from just after it, until `lasts` is over."""
    first = max(0, bisect_right(line.times, start) - 1)
    if lasts is None:
        return slice(first, None)
    end = (bisect_right if is_after else bisect_left)(line.times, start + lasts)
    return slice(first, max(end, first + 1))


def _changes_on(
    line: NodeLine, counts: list[int], lasts: timedelta | None, not_before: datetime
) -> Iterator[Change]:
    """Yield the times of start from which more or fewer members fit on the node; `counts`: how many in each step.

    More fit when a step without room is over at the start; fewer as soon as such a step begins before the end.
    """
    times = line.times
    if not any(counts):
        return
    starts = [(not_before, False), *((time, False) for time in times if time > not_before)]
    if lasts is not None:
        earliest = not_before + lasts
        starts += [(time - lasts, True) for time in times if time >= earliest]
        starts.sort()
    fitted = 0
    for start, is_after in starts:
        fits = min(counts[_steps(line, lasts, start, is_after=is_after)])
        if fits != fitted:
            yield start, is_after, fits - fitted
            fitted = fits


def _lacking_least(lines: Sequence[NodeLine], need: Room, members: int) -> tuple[NodeLine, ...]:
    """Return for one member after the other the node that lacks least for it, and could ever hold it."""
    most = [line.whole.count(need, members) for line in lines]
    number = [0] * len(lines)
    lacks = [(line.lacks(need), at) for at, line in enumerate(lines) if most[at]]
    heapify(lacks)
    chosen: list[NodeLine] = []
    while len(chosen) < members:
        at = lacks[0][1]
        if number[at] == most[at]:
            heapreplace(lacks, ((1 << 62,), at))
            continue
        chosen.append(lines[at])
        number[at] += 1
        heapreplace(lacks, (lines[at].lacks(need, members=number[at] + 1), at))
    return tuple(chosen)

"""Free room of nodes over time: runs end and give theirs back, reservations and bookings take it for a time.

A run without a known end never ends, and neither do pods outside Berth. For a need, `Nodes` knows the node and time
at which it fits first. Only nodes that changed are evaluated again, so that a queue of thousands is decided quickly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any
from uuid import UUID

from .state import NodeState, Room, Run

FOREVER = datetime.max.replace(tzinfo=UTC)
# Least time that a run past its end is assumed to need still.
GOING_DOWN = timedelta(minutes=1)

EndsOf = Callable[[Run], datetime | None]


def known_end(run: Run) -> datetime | None:
    return run.ends_at


def after(start: datetime, lasts: timedelta | None) -> datetime:
    return FOREVER if lasts is None or start == FOREVER else start + lasts


def still_to_come(end: datetime, now: datetime) -> datetime:
    """Return a future end. The longer a run is overdue, the later its end is expected."""
    return end if end > now else now + max(GOING_DOWN, now - end)


@dataclass(frozen=True)
class Held:
    """Part of a node's room that is kept for a claim or a booking from one time to another."""

    owner: UUID
    need: Room
    start: datetime
    until: datetime
    is_booking: bool = False


class NodeLine:
    """The room of one node in steps of time, the last of which lasts for ever."""

    def __init__(self, node: NodeState, ends_of: EndsOf, now: datetime) -> None:
        self.name = node.name
        self.whole = node.without_ours
        self.runs = node.runs
        self.now = now
        self._free_before = node.free
        # Free now, whatever is kept for later.
        self.free = node.free
        self.started: list[Held] = []
        self.held: list[Held] = []
        # End of each run, in the order of `runs`.
        self.ends = [FOREVER if end is None else still_to_come(end, now) for end in map(ends_of, node.runs)]
        self.build()
        # Taken without a known end: by runs, and by pods that are still terminating.
        self.endless = self.whole - self.rooms[-1]

    def build(self) -> None:
        """Rebuild the steps from the ends of runs and from what is held."""
        self.times, self.rooms = [self.now], [self._free_before]
        self._first_with: dict[int, datetime] = {}
        for at in sorted(range(len(self.runs)), key=self.ends.__getitem__):
            if self.ends[at] != FOREVER:
                self._step_at(self.ends[at])
                self.rooms[-1] = self.rooms[-1].with_back(self.runs[at].takes, self.whole)
        for held in self.started + self.held:
            self._take(held)

    def earliest(self, need: Room, lasts: timedelta | None, not_before: datetime | None = None) -> datetime:
        """Return the first time from which the need fits for `lasts`; FOREVER if unknown."""
        if lasts is None and not self.rooms[-1].holds(need):
            return FOREVER
        start = None
        least_units = 0 if need.cards else need.units
        for at, room in zip(self.times, self.rooms, strict=True):
            if room.units < least_units or not room.holds(need):
                if start is not None and lasts is not None and at - start >= lasts:
                    return start
                start = None
            elif start is None:
                start = at if not_before is None or at >= not_before else not_before
        return FOREVER if start is None else start

    def first_with(self, units: int) -> datetime:
        """Return the first time with so many free units, if only for a moment."""
        if units not in self._first_with:
            steps = zip(self.times, self.rooms, strict=True)
            self._first_with[units] = next((at for at, room in steps if room.units >= units), FOREVER)
        return self._first_with[units]

    def earliest_if_lucky(self, need: Room, members: int = 1) -> datetime:
        """Return the first time at which so many needs might fit, if all that has no known end were gone now."""
        for at, room in zip(self.times, self.rooms, strict=True):
            if room.with_back(self.endless, self.whole).count(need, members) >= members:
                return at
        return self.times[0]

    def holds_until(self, need: Room, start: datetime, members: int = 1) -> datetime:
        """Return the time until which so many needs fit from `start` on; `start` itself if they do not fit."""
        first = self._index(start)
        for at in range(first, len(self.times)):
            if self.rooms[at].count(need, members) < members:
                return max(self.times[at], start)
        return FOREVER

    def room_at(self, time: datetime) -> Room:
        return self.rooms[self._index(time)]

    def lacks(self, need: Room, time: datetime = FOREVER, members: int = 1) -> tuple[int, ...]:
        """Return what is missing for so many needs at a time. Only an end on this node reduces it."""
        room = self.room_at(time)
        units = members * need.units - room.units
        if need.cards:
            units = members * len(need.cards) - sum(card.holds(need.cards[0]) for card in room.cards)
        return (
            max(units, 0),
            max(members * need.cpu_millicores - room.cpu_millicores, 0),
            max(members * need.memory_mib - room.memory_mib, 0),
            max(members * need.pods - room.pods, 0),
            sum(max(members * asked - has, 0) for has, asked in room.of_extra(need)),
        )

    def hold(self, held: Held) -> None:
        self.held.append(held)
        self._take(held)

    def start(self, held: Held) -> None:
        self.started.append(held)
        self.free = self.free - held.need
        self._take(held)

    def _take(self, held: Held) -> None:
        self._first_with = {}
        first, end = self._step_at(held.start), self._step_at(held.until)
        for at in range(first, end):
            self.rooms[at] = self.rooms[at] - held.need

    def with_ends(self, sooner: Mapping[int, datetime]) -> NodeLine:
        """Return a copy in which the runs of these numbers end at these times."""
        line = copy(self)
        line.ends = [sooner.get(number, end) for number, end in enumerate(self.ends)]
        line.build()
        return line

    def _index(self, time: datetime) -> int:
        at = bisect_left(self.times, time)
        return at if at < len(self.times) and self.times[at] == time else max(at - 1, 0)

    def _step_at(self, time: datetime) -> int:
        """Return the number of the step that begins then; insert it if there is none."""
        if time == FOREVER:
            return len(self.times)
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self.rooms.insert(at, self.rooms[at - 1])
        return at


@dataclass(frozen=True)
class Spot:
    """Node of each member and the time from which all fit; FOREVER if no known end makes them fit."""

    nodes: tuple[NodeLine, ...]
    start: datetime


Rank = tuple[Any, ...]
Ranking = Callable[["NodeLine"], Rank | None]


class Nodes:
    """Nodes of a pool over time, with the best node for each need at hand."""

    def __init__(self, nodes: Iterable[NodeState], ends_of: EndsOf, now: datetime) -> None:
        ordered = sorted(nodes, key=lambda node: node.name)
        self.lines = [NodeLine(node, ends_of, now) for node in ordered]
        self.now = now
        self._number = {line.name: at for at, line in enumerate(self.lines)}
        self._versions = [0] * len(self.lines)
        self._changes: list[int] = []
        self._bounds: dict[Any, _Bounds] = {}
        self._best: dict[Any, _Best] = {}

    def first_fit(self, need: Room, lasts: timedelta | None) -> Spot | None:
        """Return where the need fits first, on the fullest node if that is now; else the node that lacks least.

        None: no node could ever hold it.
        """

        def at_best(line: NodeLine) -> Rank | None:
            if not line.whole.holds(need):
                return None
            first = self.now if need.cards else line.first_with(need.units)
            if first == self.now and line.rooms[0].holds(need):
                return first, line.rooms[0].units, line.rooms[0].cpu_millicores
            return (FOREVER,) if lasts is None and not line.rooms[-1].holds(need) else (first,)

        def rank(line: NodeLine) -> Rank:
            start = line.earliest(need, lasts)
            if start == self.now:
                return start, line.rooms[0].units, line.rooms[0].cpu_millicores
            # Ties by name alone: a claim that starts meanwhile must not move a reservation of another.
            return (FOREVER, *line.lacks(need)) if start == FOREVER else (start,)

        found = self.best(((need, lasts is None), lasts), at_best, rank)
        return Spot((found[1],), found[0][0]) if found else None

    def first_fit_from(self, need: Room, lasts: timedelta | None, not_before: datetime) -> Spot | None:
        """Return the same as `first_fit`, not before a time."""
        spot = self.first_fit(need, lasts)
        if spot is None or spot.start >= not_before:
            return spot
        found = None
        for line in self.lines:  # by name, so the first of equals
            start = line.earliest(need, lasts, not_before)
            if found is None or start < found.start:
                found = Spot((line,), start)
            if start == not_before:
                break
        return found

    def best(self, key: tuple[Any, Any], at_best: Ranking, rank: Ranking) -> tuple[Rank, NodeLine] | None:
        """Return the node of the lowest rank, by name among equals; a node without a rank is left out.

        `at_best` is a quick lower bound of the rank. Until `changed`, equal keys must mean equal ranks, and an equal
        first half of a key an equal `at_best`.
        """
        if key not in self._best:
            if key[0] not in self._bounds:
                self._bounds[key[0]] = _Bounds(at_best, self.lines, self._versions, self._changes)
            self._best[key] = _Best(rank, self._bounds[key[0]])
        found = self._best[key].first()
        return found and (found[0], self.lines[found[1]])

    def version(self, line: NodeLine) -> int:
        return self._versions[self._number[line.name]]

    def changed(self, line: NodeLine) -> None:
        at = self._number[line.name]
        self._versions[at] += 1
        self._changes.append(at)

    def hold(self, line: NodeLine, held: Held) -> None:
        line.hold(held)
        self.changed(line)

    def unhold(self, line: NodeLine, held: Held) -> None:
        line.held.remove(held)
        line.build()
        self.changed(line)

    def start(self, line: NodeLine, held: Held) -> None:
        """Start a run on this node now."""
        line.start(held)
        self.changed(line)

    def end_sooner(self, line: NodeLine, ends: Mapping[int, datetime]) -> None:
        for number, end in ends.items():
            line.ends[number] = end
        line.build()
        self.changed(line)


Entry = tuple[Rank, int, int, bool]  # a node's number and version, and whether the rank is exact


class _Bounds:
    """Lower bound of each node's rank; many rankings share the same bounds."""

    def __init__(
        self, at_best: Ranking, lines: list[NodeLine], versions: list[int], changes: list[int]
    ) -> None:
        self._at_best = at_best
        self.lines, self.versions, self.changes = lines, versions, changes
        self._read = len(changes)
        self._entries = [self._entry(at) for at in range(len(lines))]

    def entries(self) -> list[Entry | None]:
        for at in set(self.changes[self._read :]):
            self._entries[at] = self._entry(at)
        self._read = len(self.changes)
        return self._entries

    def _entry(self, at: int) -> Entry | None:
        bound = self._at_best(self.lines[at])
        return None if bound is None else (bound, at, self.versions[at], False)


class _Best:
    """Nodes by rank. Only changed nodes are ranked again, and exactly only those that may be first."""

    def __init__(self, rank: Ranking, bounds: _Bounds) -> None:
        self._rank, self._bounds = rank, bounds
        self._read = len(bounds.changes)
        self._heap = [entry for entry in bounds.entries() if entry]
        heapify(self._heap)

    def first(self) -> tuple[Rank, int] | None:
        lines, versions = self._bounds.lines, self._bounds.versions
        entries, changes = self._bounds.entries(), self._bounds.changes
        for entry in (entries[at] for at in set(changes[self._read :])):
            if entry:
                heappush(self._heap, entry)
        self._read = len(changes)
        while self._heap:
            key, at, version, is_exact = self._heap[0]
            if version != versions[at]:
                heappop(self._heap)
            elif is_exact:
                return key, at
            elif (exact := self._rank(lines[at])) is None:
                heappop(self._heap)
            else:
                heapreplace(self._heap, (exact, at, version, True))
        return None

"""Whom to ask for borrowed units, so that a waiting owner, or a booking that is about to begin, gets its own.

The fewest runs, of these the youngest, whose end makes it fit on one node; those that were asked before count for
nothing. No tenant is brought below what is its own. Who was asked and is not needed any more is spared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from uuid import UUID

from .state import PoolState, Reclaim, Room, Run
from .timeline import NodeLine, Nodes, Rank

# From the warning to the stop.
RECLAIM_GRACE = timedelta(minutes=10)
OWNER_WAITS, BOOKING_BEGINS = "owner_waits", "booking_begins"
# Up to so many runs of a node, every choice of them is tried.
TRY_ALL_OF = 8


@dataclass(frozen=True)
class Wanted:
    """What is to fit, from when on at the latest, and what it may not be had from."""

    need: Room
    lasts: timedelta | None
    by: datetime
    # Runs of a higher priority, and of this tenant, are left alone.
    priority: int | None = None
    spares: UUID | None = None


class Lent:
    """What tenants hold beyond their own, and which of their runs may be asked for it."""

    def __init__(self, state: PoolState, nodes: Nodes) -> None:
        self.nodes = nodes
        self.now = state.now
        self.grace_ends = state.now + RECLAIM_GRACE
        self.over = {
            tenant: quota.used_units - quota.nominal_units
            for tenant, quota in state.tenants.items()
            if quota.nominal_units is not None
        }
        self.asked: set[UUID] = set()
        ends = {run.claim: line.ends[run.claim] for line in nodes.lines for run in line.runs}
        for run in (run for line in nodes.lines for run in line.runs if run.in_pool):
            if ends[run.claim] <= self.grace_ends:  # by itself, or it was stopped already
                self.over[run.tenant] = self.over.get(run.tenant, 0) - run.takes.units
            elif run.reclaim_at is not None:
                self.asked.add(run.claim)
        self.reclaims: list[Reclaim] = []
        self.kept: set[UUID] = set()

    def get_back(self, wanted: Wanted, beneficiary: UUID, code: str) -> NodeLine | None:
        """Ask whom it takes: the node that it then fits on; None: nobody's end would do."""
        found = self._fewest(wanted)
        if found is None:
            return None
        line, chosen = found
        self.nodes.end_sooner(line, {run.claim: self._end_of(run) for run in chosen})
        for run in chosen:
            self.over[run.tenant] -= run.takes.units
            self.kept.add(run.claim)
            if run.claim not in self.asked:
                self.reclaims.append(Reclaim(run.claim, beneficiary, code))
        return line

    @property
    def spared(self) -> tuple[UUID, ...]:
        return tuple(sorted(self.asked - self.kept))

    def _fewest(self, wanted: Wanted) -> tuple[NodeLine, list[Run]] | None:
        def rank(line: NodeLine) -> Rank | None:
            chosen = self._fewest_of(line, wanted)
            if chosen is None:
                return None
            new = [run for run in chosen if run.claim not in self.asked]
            return len(new), _age(new), tuple(run.claim for run in chosen)

        while max(self.over.values(), default=0) > 0:
            best = self.nodes.best(wanted, rank)
            if best is None:
                return None
            (_number, _age_of_new, ids), line = best
            chosen = [run for run in line.runs if run.claim in ids]
            if self._leaves_all_their_own(chosen):
                return line, chosen
            self.nodes.changed(line)  # ranked before others of these tenants were asked
        return None

    def _fewest_of(self, line: NodeLine, wanted: Wanted) -> list[Run] | None:
        runs = [run for run in line.runs if self._may_be_asked(run, line, wanted)]
        if not runs or not self._would_fit(line, runs, wanted):
            return None
        asked = self._as_many_as_lent(run for run in runs if run.claim in self.asked)
        for new in self._choices([run for run in runs if run.claim not in self.asked], asked):
            chosen = asked + new
            if self._leaves_all_their_own(chosen) and self._would_fit(line, chosen, wanted):
                return self._without_needless(line, chosen, wanted)
        return None

    def _choices(self, runs: list[Run], asked: list[Run]) -> Iterator[list[Run]]:
        """Of these runs the fewest first, and of as many the youngest."""
        runs.sort(key=_youngest_first)
        if len(runs) <= TRY_ALL_OF:
            for number in range(len(runs) + 1):
                yield from (list(some) for some in combinations(runs, number))
        else:
            runs.sort(key=lambda run: -run.takes.units)
            lent = self._as_many_as_lent(asked + runs)[len(asked) :]
            yield from (lent[:number] for number in range(len(lent) + 1))

    def _as_many_as_lent(self, runs: Iterable[Run]) -> list[Run]:
        chosen: list[Run] = []
        for run in runs:
            if self._leaves_all_their_own([*chosen, run]):
                chosen.append(run)
        return chosen

    def _without_needless(self, line: NodeLine, chosen: list[Run], wanted: Wanted) -> list[Run]:
        """The oldest first are let go again where the others do."""
        for run in sorted(chosen, key=_youngest_first, reverse=True):
            others = [other for other in chosen if other is not run]
            if others and self._would_fit(line, others, wanted):
                chosen = others
        return chosen

    def _may_be_asked(self, run: Run, line: NodeLine, wanted: Wanted) -> bool:
        return (
            run.in_pool
            and run.booking is None
            and run.tenant != wanted.spares
            and 0 < run.takes.units <= self.over.get(run.tenant, 0)
            and (wanted.priority is None or run.priority <= wanted.priority)
            and line.ends[run.claim] > self.grace_ends
        )

    def _leaves_all_their_own(self, chosen: Iterable[Run]) -> bool:
        left = dict(self.over)
        for run in chosen:
            left[run.tenant] -= run.takes.units
            if left[run.tenant] < 0:
                return False
        return True

    def _would_fit(self, line: NodeLine, chosen: list[Run], wanted: Wanted) -> bool:
        by = max(wanted.by, self.grace_ends)
        free = line.room_at(by).units + sum(run.takes.units for run in chosen)
        if not wanted.need.cards and free < wanted.need.units:
            return False
        trial = line.with_ends({run.claim: self._end_of(run) for run in chosen})
        return trial.earliest(wanted.need, wanted.lasts, wanted.by) <= by

    def _end_of(self, run: Run) -> datetime:
        return self.grace_ends if run.reclaim_at is None else run.reclaim_at


def _youngest_first(run: Run) -> tuple[float, UUID]:
    return -run.admitted_at.timestamp(), run.claim


def _age(runs: list[Run]) -> tuple[float, ...]:
    """Less for younger ones."""
    return tuple(sorted(-run.admitted_at.timestamp() for run in runs))

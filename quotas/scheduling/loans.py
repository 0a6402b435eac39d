"""Runs on borrowed units, what they are asked back for, and the room that their ends give. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from .gangs import Gangs, fit_from
from .state import Room, Run
from .timeline import NodeLine, Rank


@dataclass(frozen=True)
class Need:
    """Need to make room for, the latest time for it, and the runs that are left alone."""

    need: Room
    lasts: timedelta | None
    by: datetime
    # Runs of a higher priority, and of the tenant `spares`, are left alone.
    priority: int | None = None
    spares: UUID | None = None
    # Runs partly on their tenant's own units may be preempted.
    with_partly_own: bool = False
    # Number of such needs to be met together.
    members: int = 1


@dataclass(frozen=True)
class BorrowedRun:
    """A run on units that its tenant borrows, all or some of them."""

    run: Run
    # Nodes that it is on, each with the number of the run there: one for each member.
    places: tuple[tuple[NodeLine, int], ...]
    is_preempted: bool
    returns_at: datetime  # if it is preempted, or was
    # Lower for younger runs.
    age: tuple[float, UUID]
    # Units on the node that it was looked at for.
    units_here: int

    @property
    def units(self) -> int:
        """Units on all of its nodes."""
        return self.run.all_units

    def ends_on(self, line: NodeLine) -> dict[int, datetime]:
        """Return the end of its runs on this node, by their numbers there."""
        return {number: self.returns_at for at, number in self.places if at is line}


def all_back(chosen: Iterable[BorrowedRun], wanted: Need) -> datetime:
    """Return the start: the time at which all preempted units have come back."""
    return max([wanted.by, *(loan.returns_at for loan in chosen)])


def ends_on(line: NodeLine, loans: Iterable[BorrowedRun]) -> dict[int, datetime]:
    return {number: end for loan in loans for number, end in loan.ends_on(line).items()}


class Clearing:
    """Number of members that fit at a time on all nodes together, once some loans have ended by then."""

    def __init__(self, gangs: Gangs, wanted: Need, time: datetime) -> None:
        self.wanted, self.time = wanted, time
        self._ends: defaultdict[NodeLine, dict[int, datetime]] = defaultdict(dict)
        self._fits = {
            line: gangs.fit_from(line, wanted.need, wanted.lasts, wanted.members, time)
            for line in gangs.nodes.lines
        }
        self.fits = sum(self._fits.values())

    @property
    def is_enough(self) -> bool:
        return self.fits >= self.wanted.members

    def end(self, loan: BorrowedRun) -> None:
        for line, number in loan.places:
            self._ends[line][number] = loan.returns_at
        self._count(loan)

    def go_on(self, loan: BorrowedRun) -> None:
        for line, number in loan.places:
            del self._ends[line][number]
        self._count(loan)

    def is_enough_without(self, loans: Iterable[BorrowedRun]) -> bool:
        for loan in loans:
            self.end(loan)
        return self.is_enough

    def without_needless(self, chosen: list[BorrowedRun]) -> list[BorrowedRun]:
        """Leave out loans whose end is not needed, the oldest first."""
        for loan in sorted(chosen, key=lambda loan: loan.age, reverse=True):
            self.go_on(loan)
            if self.is_enough and len(chosen) > 1:
                chosen = [other for other in chosen if other is not loan]
            else:
                self.end(loan)
        return sorted(chosen, key=lambda loan: loan.age)

    def cost(self, line: NodeLine, loans: list[BorrowedRun]) -> Rank | None:
        """Return how dear the room of a node is, if all loans there end: runs for a member. None: no more would fit."""
        more = self._fit(line, ends_on(line, loans)) - self._fits[line]
        new = [loan for loan in loans if not loan.is_preempted]
        return (
            (sum(loan.run.members for loan in new) / more, [loan.age[0] for loan in new])
            if more > 0
            else None
        )

    def _count(self, loan: BorrowedRun) -> None:
        for line in {line for line, _number in loan.places}:
            self.fits -= self._fits[line]
            self._fits[line] = self._fit(line, self._ends[line])
            self.fits += self._fits[line]

    def _fit(self, line: NodeLine, ends: Mapping[int, datetime]) -> int:
        wanted = self.wanted
        return fit_from(
            line.with_ends(ends) if ends else line, wanted.need, wanted.lasts, wanted.members, self.time
        )

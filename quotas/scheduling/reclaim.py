"""Choice of borrowed runs to preempt, so that a waiting owner, or a booking about to begin, gets its own units.

The fewest runs are chosen, of these the youngest, whose end makes the need fit on one node; runs preempted before are
not counted. No tenant falls below its own share, except by its last run: a run partly on its own GPUs is preempted
where no other end would do, or an owner could wait for ever. A preemption that is not needed is cancelled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations
from uuid import UUID

from .state import PoolState, Reclaim, Room, Run, Waiting
from .timeline import NodeLine, Nodes, Rank, Spot

OWNER_WAITS, BOOKING_BEGINS = "owner_waits", "booking_begins"
# Up to so many runs of a node, every combination is tried.
TRY_ALL_OF = 8


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


@dataclass(frozen=True)
class BorrowedRun:
    """A run on units that its tenant borrows, all or some of them."""

    run: Run
    number: int  # of the run on its node
    units: int
    is_preempted: bool
    returns_at: datetime  # if it is preempted, or was
    # Lower for younger runs.
    age: tuple[float, UUID]


class Preemption:
    """Units that tenants hold beyond their own, and the runs that may be preempted for them."""

    def __init__(self, state: PoolState, nodes: Nodes, stand_by: Container[UUID]) -> None:
        self.nodes = nodes
        self.grace_ends = state.now + state.grace
        self.over = {
            tenant: quota.used_units - quota.nominal_units
            for tenant, quota in state.tenants.items()
            if quota.nominal_units is not None
        }
        self._preempted: set[UUID] = set()
        for line in nodes.lines:
            for run, end in zip(line.runs, line.ends, strict=True):
                if run.in_pool and end <= self.grace_ends:  # by itself, or it was stopped already
                    if run.tenant in self.over:
                        self.over[run.tenant] -= run.takes.units
                elif run.in_pool and run.reclaim_at is not None:
                    self._preempted.add(run.claim)
        self._loans: dict[str, list[BorrowedRun]] = {}
        self._at_best: dict[str, list[tuple[int, Rank]]] = {}
        self._lines_of: defaultdict[UUID, list[NodeLine]] = defaultdict(list)
        for line in nodes.lines:
            self._look_at(line)
            for tenant in {run.tenant for run in line.runs if run.in_pool}:
                self._lines_of[tenant].append(line)
        self._without_loans: dict[str, tuple[int, NodeLine]] = {}
        # Node on which each beneficiary of an earlier preemption waits; until its turn no other claim counts on it.
        waiting = {claim.claim for claim in state.waiting if claim.claim not in stand_by}
        waiting |= {booking.booking for booking in state.bookings}
        self._waits_on = {
            loan.run.reclaim_for: line
            for line in nodes.lines
            for loan in self._loans[line.name]
            if loan.is_preempted and loan.run.reclaim_for in waiting
        }
        self._kept: set[UUID] = set()
        self.reclaims: list[Reclaim] = []

    @property
    def cancelled(self) -> tuple[UUID, ...]:
        """Runs whose earlier preemption is no longer needed."""
        return tuple(sorted(self._preempted - self._kept))

    def get_back(
        self, wanted: Need, beneficiary: UUID, code: str, *, may_preempt: bool = True
    ) -> Spot | None:
        """Preempt the runs it takes. Return where and when the need then fits; None: no end would do."""
        found = self._preempted_before(wanted, beneficiary)
        if found is None and may_preempt:
            found = self._fewest(wanted) or self._fewest(replace(wanted, with_partly_own=True))
        if found is None:
            return None
        line, chosen = found
        self.nodes.end_sooner(line, {loan.number: loan.returns_at for loan in chosen})
        self._look_at(line)
        for loan in chosen:
            self.over[loan.run.tenant] -= loan.units
            self._kept.add(loan.run.claim)
            if loan.run.reclaim_for != beneficiary:
                self.reclaims.append(Reclaim(loan.run.claim, beneficiary, code))
        for tenant in {loan.run.tenant for loan in chosen}:
            if self.over[tenant] <= 0:
                self._look_at_all_of(tenant)
        return Spot(line, line.earliest(wanted.need, wanted.lasts, _all_back(chosen, wanted)))

    def starts(self, claim: Waiting, until: datetime) -> None:
        """Count a started claim in its tenant's use; the tenant may begin to borrow."""
        before = self.over.get(claim.tenant)
        if before is None or until <= self.grace_ends:
            return
        self.over[claim.tenant] = before + claim.need.units
        if before <= 0 < self.over[claim.tenant]:
            self._look_at_all_of(claim.tenant)

    def has_turn(self, beneficiary: UUID) -> None:
        """Open the units preempted for this beneficiary to all: its turn has come."""
        line = self._waits_on.pop(beneficiary, None)
        if line is not None:
            self.nodes.changed(line)

    def _preempted_before(self, wanted: Need, beneficiary: UUID) -> tuple[NodeLine, list[BorrowedRun]] | None:
        """Return an earlier preemption for it if that still suffices, even if another would be better now."""
        line = self._waits_on.get(beneficiary)
        self.has_turn(beneficiary)
        if line is None:
            return None
        wanted = replace(wanted, with_partly_own=True)  # the earlier choice may have had such runs
        loans = [
            loan
            for loan in self._loans[line.name]
            if loan.run.reclaim_for == beneficiary and self._may_be_preempted(loan, line, wanted)
        ]
        if not (loans and self._are_lent(loans, wanted) and self._would_fit(line, loans, wanted)):
            return None
        return line, self._without_needless(line, loans, wanted)

    def _look_at_all_of(self, tenant: UUID) -> None:
        """Rank a tenant's nodes again: it began or ceased to borrow."""
        for line in self._lines_of[tenant]:
            self._look_at(line)
            self.nodes.changed(line)

    def _look_at(self, line: NodeLine) -> None:
        self._loans[line.name] = self._loans_of(line)
        self._at_best[line.name] = _units_by_rank(self._loans[line.name])

    def _loans_of(self, line: NodeLine) -> list[BorrowedRun]:
        """Return the loans, youngest first."""
        loans = (
            BorrowedRun(
                run,
                number,
                run.takes.units,
                is_preempted=run.reclaim_at is not None,
                returns_at=run.reclaim_at or self.grace_ends,
                age=(-run.admitted_at.timestamp(), run.claim),
            )
            for number, run in enumerate(line.runs)
            if run.in_pool
            and run.booking is None
            and run.takes.units
            and self.over.get(run.tenant, 0) > 0
            and line.ends[number] > self.grace_ends
        )
        return sorted(loans, key=lambda loan: loan.age)

    def _fewest(self, wanted: Need) -> tuple[NodeLine, list[BorrowedRun]] | None:
        def at_best(line: NodeLine) -> Rank | None:
            return self._fewest_at_best(line, wanted)

        def rank(line: NodeLine) -> Rank | None:
            chosen = self._fewest_of(line, wanted)
            if chosen is None:
                return None
            ages = tuple(loan.age[0] for loan in chosen if not loan.is_preempted)
            return len(ages), ages, tuple(loan.run.claim for loan in chosen)

        for_bound = "loans", wanted.need.units, bool(wanted.need.cards), wanted.by
        while max(self.over.values(), default=0) > 0:
            best = self.nodes.best((for_bound, wanted), at_best, rank)
            if best is None:
                return None
            (_number, _ages, claims), line = best
            chosen = [loan for loan in self._loans[line.name] if loan.run.claim in claims]
            if self._are_lent(chosen, wanted):
                return line, chosen
            self.nodes.changed(line)  # ranked before other runs of these tenants were preempted
        return None

    def _fewest_at_best(self, line: NodeLine, wanted: Need) -> Rank | None:
        """Return a lower bound of the rank: only units matter, and every loan may be preempted."""
        loans = self._loans[line.name]
        if not loans:
            return None
        if wanted.need.cards:
            return 0, ()
        missing = wanted.need.units - line.room_at(max(wanted.by, self.grace_ends)).units
        return next((rank for units, rank in self._at_best[line.name] if units >= missing), None)

    def _fewest_of(self, line: NodeLine, wanted: Need) -> list[BorrowedRun] | None:
        loans = [
            loan
            for loan in self._loans[line.name]
            if self._may_be_preempted(loan, line, wanted) and loan.run.reclaim_for not in self._waits_on
        ]
        if not loans or not self._would_fit_at_best(line, wanted):
            return None
        preempted = self._as_many_as_lent((loan for loan in loans if loan.is_preempted), wanted)
        for new in self._choices([loan for loan in loans if not loan.is_preempted], preempted, wanted):
            chosen = preempted + new
            if self._are_lent(chosen, wanted) and self._would_fit(line, chosen, wanted):
                return self._without_needless(line, chosen, wanted)
        return None

    def _choices(
        self, loans: list[BorrowedRun], preempted: list[BorrowedRun], wanted: Need
    ) -> Iterator[list[BorrowedRun]]:
        """Yield choices of loans: the fewest first, then the youngest."""
        if len(loans) <= TRY_ALL_OF:
            for number in range(len(loans) + 1):
                yield from (list(some) for some in combinations(loans, number))
        else:
            largest = sorted(loans, key=lambda loan: -loan.units)
            lent = self._as_many_as_lent(preempted + largest, wanted)[len(preempted) :]
            yield from (lent[:number] for number in range(len(lent) + 1))

    def _as_many_as_lent(self, loans: Iterable[BorrowedRun], wanted: Need) -> list[BorrowedRun]:
        chosen: list[BorrowedRun] = []
        for loan in loans:
            if self._are_lent([*chosen, loan], wanted):
                chosen.append(loan)
        return chosen

    def _without_needless(self, line: NodeLine, chosen: list[BorrowedRun], wanted: Need) -> list[BorrowedRun]:
        """Leave out loans that are not needed, the oldest first."""
        for loan in sorted(chosen, key=lambda loan: loan.age, reverse=True):
            others = [other for other in chosen if other is not loan]
            if others and self._would_fit(line, others, wanted):
                chosen = others
        return sorted(chosen, key=lambda loan: loan.age)

    def _may_be_preempted(self, loan: BorrowedRun, line: NodeLine, wanted: Need) -> bool:
        return (
            loan.run.tenant != wanted.spares
            and self._are_lent([loan], wanted)
            and (wanted.priority is None or loan.run.priority <= wanted.priority)
            and line.ends[loan.number] > self.grace_ends
        )

    def _are_lent(self, chosen: Iterable[BorrowedRun], wanted: Need) -> bool:
        """Return True if each tenant borrows all chosen units; with partly own runs, more than all but the largest."""
        taken: defaultdict[UUID, list[int]] = defaultdict(list)
        for loan in chosen:
            taken[loan.run.tenant].append(loan.units)
        if wanted.with_partly_own:
            return all(sum(units) - max(units) < self.over[tenant] for tenant, units in taken.items())
        return all(sum(units) <= self.over[tenant] for tenant, units in taken.items())

    def _would_fit_at_best(self, line: NodeLine, wanted: Need) -> bool:
        """Return True if the need would fit once all loans ended."""
        version = self.nodes.version(line)
        if self._without_loans.get(line.name, (None, line))[0] != version:
            ends = {
                loan.number: min(loan.returns_at, line.ends[loan.number]) for loan in self._loans[line.name]
            }
            self._without_loans[line.name] = version, line.with_ends(ends)
        _version, trial = self._without_loans[line.name]
        return trial.earliest(wanted.need, wanted.lasts, wanted.by) <= max(wanted.by, self.grace_ends)

    def _would_fit(self, line: NodeLine, chosen: list[BorrowedRun], wanted: Need) -> bool:
        by = max(wanted.by, self.grace_ends)
        units = line.room_at(by).units + sum(loan.units for loan in chosen)
        if not wanted.need.cards and units < wanted.need.units:
            return False
        trial = line.with_ends({loan.number: loan.returns_at for loan in chosen})
        return trial.earliest(wanted.need, wanted.lasts, _all_back(chosen, wanted)) <= by


def _all_back(chosen: Iterable[BorrowedRun], wanted: Need) -> datetime:
    """Return the start: the time at which all preempted units have come back."""
    return max([wanted.by, *(loan.returns_at for loan in chosen)])


def _units_by_rank(loans: list[BorrowedRun]) -> list[tuple[int, Rank]]:
    """Return the most units that come back for each rank: none, this one, two … new preemptions."""
    units = sum(loan.units for loan in loans if loan.is_preempted)
    new = [loan for loan in loans if not loan.is_preempted]
    largest = sorted((loan.units for loan in new), reverse=True)
    ages = tuple(loan.age[0] for loan in new)
    ones: list[tuple[int, Rank]] = [(units + loan.units, (1, (loan.age[0],))) for loan in new]
    more = [(units + sum(largest[:number]), (number, ages[:number])) for number in range(2, len(new) + 1)]
    return [(units, (0, ())), *ones, *more]

"""Choice of borrowed runs to preempt, so that a waiting owner, or a booking about to begin, gets its own units.

The fewest runs are chosen, of these the youngest, whose end makes the need fit on one node; runs preempted before are
not counted. No tenant falls below its own share, except by its last run: a run partly on its own GPUs is preempted
where no other end would do, or an owner could wait for ever. A preemption that is not needed is cancelled.

A claim of several members is preempted as a whole: it counts as that many runs, and all of its units come back, on all
of its nodes. For a waiting claim of several members, the nodes that give most room for the fewest runs are cleared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain, combinations
from operator import itemgetter
from uuid import UUID

from .gangs import Gangs
from .loans import BorrowedRun, Clearing, Need, all_back, ends_on
from .state import PoolState, Reclaim, Waiting
from .timeline import NodeLine, Rank, Spot

OWNER_WAITS, BOOKING_BEGINS = "owner_waits", "booking_begins"
# Up to so many runs of a node, every combination is tried.
TRY_ALL_OF = 8


# Loans to preempt, and the node that they make room on; None: all nodes that they are on.
Chosen = tuple[NodeLine | None, list[BorrowedRun]]


class Preemption:
    """Units that tenants hold beyond their own, and the runs that may be preempted for them."""

    def __init__(self, state: PoolState, gangs: Gangs, stand_by: Container[UUID]) -> None:
        self.gangs, self.nodes = gangs, gangs.nodes
        self.grace_ends = state.now + state.grace
        self.over = {
            tenant: quota.used_units - quota.nominal_units
            for tenant, quota in state.tenants.items()
            if quota.nominal_units is not None
        }
        self._preempted: set[UUID] = set()
        self._members_at: defaultdict[UUID, list[tuple[NodeLine, int]]] = defaultdict(list)
        for line in self.nodes.lines:
            self._read_runs(line)
        self._loans: dict[str, list[BorrowedRun]] = {}
        self._at_best: dict[str, list[tuple[int, Rank]]] = {}
        self._lines_of: defaultdict[UUID, list[NodeLine]] = defaultdict(list)
        for line in self.nodes.lines:
            self._look_at(line)
            for tenant in {run.tenant for run in line.runs if run.in_pool}:
                self._lines_of[tenant].append(line)
        self._without_loans: dict[str, tuple[int, NodeLine]] = {}
        # Nodes on which each beneficiary of an earlier preemption waits; until its turn no other claim counts on them.
        waiting = {claim.claim for claim in state.waiting if claim.claim not in stand_by}
        waiting |= {booking.booking for booking in state.bookings}
        self._waits_on: defaultdict[UUID | None, list[NodeLine]] = defaultdict(list)
        for line in self.nodes.lines:
            preempted = (loan for loan in self._loans[line.name] if loan.is_preempted)
            for beneficiary in dict.fromkeys(loan.run.reclaim_for for loan in preempted):
                if beneficiary in waiting:
                    self._waits_on[beneficiary].append(line)
        self._kept: set[UUID] = set()
        self.reclaims: list[Reclaim] = []

    def _read_runs(self, line: NodeLine) -> None:
        """Note the runs that were preempted, and where claims of several members are."""
        for number, (run, end) in enumerate(zip(line.runs, line.ends, strict=True)):
            if run.members > 1:
                self._members_at[run.claim].append((line, number))
            if run.in_pool and end <= self.grace_ends:  # by itself, or it was stopped already
                if run.tenant in self.over:
                    self.over[run.tenant] -= run.takes.units
            elif run.in_pool and run.reclaim_at is not None:
                self._preempted.add(run.claim)

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
            find = self._fewest if wanted.members == 1 else self._enough_for_all
            found = find(wanted) or find(replace(wanted, with_partly_own=True))
        if found is None:
            return None
        line, chosen = found
        for at in dict.fromkeys(at for loan in chosen for at, _number in loan.places):
            self.nodes.end_sooner(at, ends_on(at, chosen))
            self._look_at(at)
        for loan in chosen:
            self.over[loan.run.tenant] -= loan.units
            self._kept.add(loan.run.claim)
            if loan.run.reclaim_for != beneficiary:
                self.reclaims.append(Reclaim(loan.run.claim, beneficiary, code))
        for tenant in {loan.run.tenant for loan in chosen}:
            if self.over[tenant] <= 0:
                self._look_at_all_of(tenant)
        back = all_back(chosen, wanted)
        if line is None:
            return self.gangs.first_fit(wanted.need, wanted.lasts, wanted.members, back)
        return Spot((line,), line.earliest(wanted.need, wanted.lasts, back))

    def starts(self, claim: Waiting, until: datetime) -> None:
        """Count a started claim in its tenant's use; the tenant may begin to borrow."""
        before = self.over.get(claim.tenant)
        if before is None or until <= self.grace_ends:
            return
        self.over[claim.tenant] = before + claim.units
        if before <= 0 < self.over[claim.tenant]:
            self._look_at_all_of(claim.tenant)

    def has_turn(self, beneficiary: UUID) -> None:
        """Open the units preempted for this beneficiary to all: its turn has come."""
        for line in self._waits_on.pop(beneficiary, ()):
            self.nodes.changed(line)

    def _preempted_before(self, wanted: Need, beneficiary: UUID) -> Chosen | None:
        """Return an earlier preemption for it if that still suffices, even if another would be better now."""
        lines = self._waits_on.get(beneficiary, [])
        self.has_turn(beneficiary)
        wanted = replace(wanted, with_partly_own=True)  # the earlier choice may have had such runs
        if wanted.members > 1:
            if loans := self._preempted_for(beneficiary, lines, wanted):
                for time in (all_back(loans, wanted), max(wanted.by, self.grace_ends)):
                    clearing = Clearing(self.gangs, wanted, time)
                    if clearing.is_enough_without(loans):
                        return None, clearing.without_needless(loans)
            return None
        for line in lines:
            loans = self._preempted_for(beneficiary, [line], wanted)
            if loans and self._would_fit(line, loans, wanted):
                return line, self._without_needless(line, loans, wanted)
        return None

    def _preempted_for(self, beneficiary: UUID, lines: Iterable[NodeLine], wanted: Need) -> list[BorrowedRun]:
        """Return the loans on these nodes that were preempted for it, each once; none if they are not lent any more."""
        there = {loan.run.claim: loan for line in lines for loan in self._loans[line.name]}.values()
        loans = [
            loan
            for loan in there
            if loan.run.reclaim_for == beneficiary and self._may_be_preempted(loan, wanted)
        ]
        return loans if self._are_lent(loans, wanted) else []

    def _open_to(self, line: NodeLine, wanted: Need) -> list[BorrowedRun]:
        """Return the loans of a node that may be preempted, and that are not preempted for others."""
        return [
            loan
            for loan in self._loans[line.name]
            if self._may_be_preempted(loan, wanted) and loan.run.reclaim_for not in self._waits_on
        ]

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
        loans: dict[UUID, BorrowedRun] = {}
        for number, run in enumerate(line.runs):
            if (
                run.in_pool
                and run.booking is None
                and run.takes.units
                and self.over.get(run.tenant, 0) > 0
                and line.ends[number] > self.grace_ends
                and run.claim not in loans
            ):
                places = self._members_at[run.claim] if run.members > 1 else [(line, number)]
                loans[run.claim] = BorrowedRun(
                    run,
                    tuple(places),
                    is_preempted=run.reclaim_at is not None,
                    returns_at=run.reclaim_at or self.grace_ends,
                    age=(-run.admitted_at.timestamp(), run.claim),
                    units_here=run.takes.units * sum(at is line for at, _number in places),
                )
        return sorted(loans.values(), key=lambda loan: loan.age)

    def _fewest(self, wanted: Need) -> Chosen | None:
        def at_best(line: NodeLine) -> Rank | None:
            return self._fewest_at_best(line, wanted)

        def rank(line: NodeLine) -> Rank | None:
            chosen = self._fewest_of(line, wanted)
            if chosen is None:
                return None
            new = [loan for loan in chosen if not loan.is_preempted]
            ages = tuple(loan.age[0] for loan in new)
            return _runs_in(new), ages, tuple(loan.run.claim for loan in chosen)

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

    def _enough_for_all(self, wanted: Need) -> Chosen | None:
        """Return loans whose end gives room for all members: node after node, the cheapest first, and no needless."""
        clearing = Clearing(self.gangs, wanted, max(wanted.by, self.grace_ends))
        loans_on = {line: self._open_to(line, wanted) for line in self.nodes.lines}
        costs = ((clearing.cost(line, loans), line) for line, loans in loans_on.items() if loans)
        chosen: dict[UUID, BorrowedRun] = {}
        of_tenant: defaultdict[UUID, list[BorrowedRun]] = defaultdict(list)
        for _cost, line in sorted((found for found in costs if found[0]), key=itemgetter(0)):
            for loan in loans_on[line]:
                others = of_tenant[loan.run.tenant]
                if loan.run.claim not in chosen and self._are_lent([*others, loan], wanted):
                    chosen[loan.run.claim] = loan
                    others.append(loan)
                    clearing.end(loan)
            if clearing.is_enough:
                return None, clearing.without_needless([*chosen.values()])
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
        loans = self._open_to(line, wanted)
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
            numbers = range(len(loans) + 1)
            some = chain.from_iterable(combinations(loans, number) for number in numbers)
            is_mixed = any(loan.run.members > 1 for loan in loans)
            yield from map(list, sorted(some, key=_runs_in) if is_mixed else some)
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

    def _may_be_preempted(self, loan: BorrowedRun, wanted: Need) -> bool:
        line, number = loan.places[0]
        return (
            loan.run.tenant != wanted.spares
            and self._are_lent([loan], wanted)
            and (wanted.priority is None or loan.run.priority <= wanted.priority)
            and line.ends[number] > self.grace_ends
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
            ends = ends_on(line, self._loans[line.name])
            sooner = {number: min(end, line.ends[number]) for number, end in ends.items()}
            self._without_loans[line.name] = version, line.with_ends(sooner)
        _version, trial = self._without_loans[line.name]
        return trial.earliest(wanted.need, wanted.lasts, wanted.by) <= max(wanted.by, self.grace_ends)

    def _would_fit(self, line: NodeLine, chosen: list[BorrowedRun], wanted: Need) -> bool:
        by = max(wanted.by, self.grace_ends)
        units = line.room_at(by).units + sum(loan.units_here for loan in chosen)
        if not wanted.need.cards and units < wanted.need.units:
            return False
        trial = line.with_ends(ends_on(line, chosen))
        return trial.earliest(wanted.need, wanted.lasts, all_back(chosen, wanted)) <= by


def _runs_in(loans: Iterable[BorrowedRun]) -> int:
    return sum(loan.run.members for loan in loans)


def _units_by_rank(loans: list[BorrowedRun]) -> list[tuple[int, Rank]]:
    """Return the most units that come back on the node for each rank: none, this one, two … new preemptions."""
    units = sum(loan.units_here for loan in loans if loan.is_preempted)
    new = [(loan.units_here, loan.age[0]) for loan in loans if not loan.is_preempted]
    largest = sorted((back for back, _age in new), reverse=True)
    ages = tuple(age for _back, age in new)
    ones: list[tuple[int, Rank]] = [(units + back, (1, (age,))) for back, age in new]
    more = [(units + sum(largest[:number]), (number, ages[:number])) for number in range(2, len(new) + 1)]
    return [(units, (0, ())), *ones, *more]

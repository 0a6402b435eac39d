"""Walk along the queue of a pool: each claim starts, or reserves the earliest time and node that it can have.

Later claims cannot use a reservation, so no claim is delayed by a later one (conservative backfill). A later claim
starts now if it fits beside all reservations, or is certain to end before them. If nobody knows when a run ends, the
node that lacks least is reserved from the first moment at which it might have room.

A claim of several members has all of them at once, on nodes that it reserves as one (`gangs.py`).
A claim that waits for a volume reserves nothing but its turn there.
A claim at a limit of its tenant or person reserves nothing, and holds back later claims that need more of that limit.
A claim that no node could ever hold, that is in back-off or out of budget, holds back nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from .gangs import Gangs
from .leases import Leases
from .loans import Need
from .order import ordered, promised, with_a_place, within_own
from .places import Places
from .reclaim import OWNER_WAITS, Preemption
from .shares import Shares, asked_by
from .state import Admitted, PoolState, Reason, Run, Waiting
from .timeline import FOREVER, EndsOf, Held, NodeLine, Nodes, Spot, after, known_end
from .why import backs_off, limit_full, standing_by


@dataclass(frozen=True)
class Reserved:
    """Time reserved for a claim that waits for room; FOREVER if no known end gives that room."""

    start: datetime
    # Borrowed runs are preempted for it.
    is_reclaimed: bool = False


class Walk:
    def __init__(self, state: PoolState, ends_of: EndsOf = known_end) -> None:
        def end_of(run: Run) -> datetime | None:
            """Return the earliest known end. A run past its preemption deadline is stopping already."""
            end = ends_of(run)
            stopped = run.reclaim_at if run.reclaim_at and run.reclaim_at <= state.now else None
            return min((time for time in (end, stopped) if time), default=None)

        self.state = state
        self.now = state.now
        self.standing_by = standing_by(state)
        self.own = within_own(state, self.standing_by)
        self.promised = promised(state)
        booked = with_a_place(state, self.standing_by)
        self.order = ordered(state, self.own | self.promised, booked, self.standing_by)
        self.nodes = Nodes(state.nodes, end_of, state.now)
        self.shares = Shares(state, end_of)
        self.gangs = Gangs(self.nodes)
        self.lent = Preemption(state, self.gangs, self.standing_by)
        self.places = Places(state, self.nodes, self.lent)
        self.admitted: dict[UUID, Admitted] = {}
        self.reserved: dict[UUID, Reserved] = {}
        self.limited: dict[UUID, Reason] = {}
        self.leases = Leases(state.leased)
        for claim in self.order:
            if claim.claim in booked:
                self._takes_its_place(claim)
        self.places.preempt()
        for claim in self.order:
            if claim.claim not in self.standing_by and claim.claim not in self.admitted:
                self._turn(claim)
            self.lent.has_turn(claim.claim)

    def _takes_its_place(self, claim: Waiting) -> bool:
        """Start the claim in a booked place. Return True if it started or waits for a limit or a volume."""
        if (in_use := self.leases.in_the_way(claim)) is not None:
            self.limited[claim.claim] = in_use
            self.leases.take(claim)  # later ones wait behind it, or readers would keep a writer out for ever
            return True
        limit = self._limit(claim)
        if limit is not None:
            self.limited[claim.claim] = limit
            self._keep_preemption(claim)
            return True
        places = self.places.take(claim)
        if places:
            self._start(claim, [place.line for place in places], places[0].booking.booking)
        return bool(places)

    def _turn(self, claim: Waiting) -> None:
        if self._takes_its_place(claim):
            return
        spot = self.gangs.first_fit(claim.need, claim.lasts, claim.members)
        assert spot is not None  # otherwise it would be on standby
        if spot.start == self.now:
            self._start(claim, spot.nodes)
            return
        may_preempt = claim.claim in self.own
        got = self._preempt(claim, may_preempt=may_preempt) if spot.start > self.lent.grace_ends else None
        spot = got or spot
        self.reserved[claim.claim] = Reserved(spot.start, is_reclaimed=got is not None)
        self.keep(claim, spot)

    def _preempt(self, claim: Waiting, *, may_preempt: bool) -> Spot | None:
        """Preempt borrowed runs so that the claim fits within the grace time. Return where and when, or None."""
        if not claim.need.units or not (may_preempt or claim.claim in self.promised):
            return None
        wanted = Need(claim.need, claim.lasts, self.now, claim.priority, members=claim.members)
        return self.lent.get_back(wanted, claim.claim, OWNER_WAITS, may_preempt=may_preempt)

    def _keep_preemption(self, claim: Waiting) -> None:
        """Keep the preemption made for a claim if a short run of its tenant frees the limit within the grace time."""
        if claim.claim in self.promised and self.shares.earliest(claim, self.now) <= self.lent.grace_ends:
            got = self._preempt(claim, may_preempt=False)
            if got is not None:
                self.keep(claim, got)

    def _start(self, claim: Waiting, lines: Sequence[NodeLine], booking: UUID | None = None) -> None:
        """Start all members of a claim, each on its node."""
        kept_from = min(
            line.holds_until(claim.need, self.now, members) for line, members in Counter(lines).items()
        )
        until = min(after(self.now, claim.lasts), kept_from)
        for line in lines:
            self.nodes.start(line, Held(claim.claim, claim.need, self.now, until))
        self.shares.keep(claim, self.now, until)
        self.lent.starts(claim, until)
        self.leases.take(claim)
        must_end_at = None if kept_from == FOREVER else kept_from
        names = tuple(line.name for line in lines)
        self.admitted[claim.claim] = Admitted(claim.claim, names, booking, must_end_at)

    def keep(self, claim: Waiting, spot: Spot) -> None:
        """Reserve the places of all members."""
        start, until = spot.start, after(spot.start, claim.lasts)
        if start == FOREVER:
            start = max(
                line.earliest_if_lucky(claim.need, members) for line, members in Counter(spot.nodes).items()
            )
        for line in spot.nodes:
            self.nodes.hold(line, Held(claim.claim, claim.need, start, until))
        self.shares.keep(claim, start, until)

    def later(self, claim: Waiting) -> datetime | None:
        """Reserve and return the start of a claim in back-off or at a limit, after all others; None: unknown."""
        not_before = self.now
        if self.leases.in_the_way(claim) is not None:
            return None
        if claim.claim in self.standing_by:
            if claim.not_before is None or not backs_off(self.state, claim):
                return None
            not_before = claim.not_before
        start = self.shares.earliest(claim, not_before)
        while start != FOREVER:
            spot = self.gangs.first_fit(claim.need, claim.lasts, claim.members, start)
            if spot is None or spot.start == FOREVER:
                return None
            start = self.shares.earliest(claim, spot.start)
            if start == spot.start:
                self.keep(claim, spot)
                return start
        return None

    def _limit(self, claim: Waiting) -> Reason | None:
        """Return the reason if a limit of its tenant or person is full or promised to an earlier claim; close it."""
        asked, until = asked_by(claim), after(self.now, claim.lasts)
        shares = list(self.shares.of(claim))
        full = [(share, number) for share in shares for number in sorted(share.broken(asked))]
        promised = [(share, number) for share in shares for number in sorted(share.promised(asked, until))]
        for share, number in full + promised:
            share.closed.add(number)
        if full:
            share, number = full[0]
            return limit_full(claim, self.state, number, share)
        if not promised:
            return None
        is_tenants = promised[0][0].user is None
        return Reason("behind_own_tenant") if is_tenants else Reason("behind_own_request")

"""Booked places, each kept free on a node that suits it. Runs of the booking's tenant may use them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from .loans import Need
from .reclaim import BOOKING_BEGINS, Preemption
from .state import Booked, Card, PoolState, Room, Waiting
from .timeline import Held, NodeLine, Nodes, Rank, after

GPU_IN_PERCENT = 100


@dataclass(frozen=True)
class Place:
    """A place of a booking that no run uses."""

    booking: Booked
    line: NodeLine
    held: Held


class Places:
    """Booked places that are kept free."""

    def __init__(self, state: PoolState, nodes: Nodes, lent: Preemption) -> None:
        self.state = state
        self.nodes = nodes
        self.lent = lent
        self.now = state.now
        self.used = Counter(run.booking for node in state.nodes for run in node.runs)
        self._places: defaultdict[UUID, list[Place]] = defaultdict(list)
        self._soon: Counter[UUID] = Counter()  # units of places that begin within the grace time, by tenant
        self._keep_all(preempt=False)

    def preempt(self) -> None:
        """Lay out the unused places again, now with preemption of borrowed runs."""
        for place in [place for places in self._places.values() for place in places]:
            self.nodes.unhold(place.line, place.held)
        self._places.clear()
        self._keep_all(preempt=True)

    def _keep_all(self, *, preempt: bool) -> None:
        cards = (card for node in self.state.nodes for card in node.without_ours.cards)
        whole = max((card.memory_mib for card in cards), default=0)
        for booking in sorted(self.state.bookings, key=lambda booking: (booking.starts_at, booking.booking)):
            if booking.ends_at > self.now:
                need = _need(booking, whole)
                for _number in range(booking.places - self.used[booking.booking]):
                    self._keep(booking, need, preempt=preempt)
            if preempt:
                self.lent.has_turn(booking.booking)

    def take(self, claim: Waiting) -> list[Place]:
        """Take a place for each member of the claim, of one of its tenant's bookings that has begun; or none."""
        latest_first = reversed(self._places[claim.tenant])  # the others would be kept without the last, too
        for booking, places in groupby(latest_first, lambda place: place.booking):
            taken: list[Place] = []
            for place in places:
                if place.held.start > self.now or claim.need.units > booking.units_each:
                    continue
                self.nodes.unhold(place.line, place.held)
                if not self._suits(claim, place, beside=taken):
                    self.nodes.hold(place.line, place.held)
                    continue
                taken.append(place)
                if len(taken) == claim.members:
                    for used in taken:
                        self._places[claim.tenant].remove(used)
                    self.used[booking.booking] += claim.members
                    return taken
            for place in taken:
                self.nodes.hold(place.line, place.held)
        return []

    def _suits(self, claim: Waiting, place: Place, beside: list[Place]) -> bool:
        """Return True if a member may start there, beside those on the places taken already."""
        members = 1 + sum(other.line is place.line for other in beside)
        until = min(after(self.now, claim.lasts), place.booking.ends_at)
        return (
            place.line.free.count(claim.need, members) == members
            and place.line.holds_until(claim.need, self.now, members) >= until
        )

    def _keep(self, booking: Booked, need: Room, *, preempt: bool) -> None:
        start = max(booking.starts_at, self.now)
        lasts = booking.ends_at - start
        may_preempt = preempt and start <= self.lent.grace_ends
        self._soon[booking.tenant] += booking.units_each if may_preempt else 0

        def rank(line: NodeLine) -> Rank | None:
            if not line.whole.holds(need):
                return None
            if line.earliest(need, lasts, start) == start:
                return 0, line.whole.units
            return 1, *line.lacks(need, start)

        found = self.nodes.best(("place", (need, start, booking.ends_at)), lambda line: (0,), rank)
        if found is None:
            return
        ranked, line = found
        if may_preempt and ranked[0] and self._is_within_own(booking.tenant):
            wanted = Need(need, lasts, start, spares=booking.tenant)
            got = self.lent.get_back(wanted, booking.booking, BOOKING_BEGINS)
            line = got.nodes[0] if got else line
        held = Held(booking.booking, need, start, booking.ends_at, is_booking=True)
        self.nodes.hold(line, held)
        self._places[booking.tenant].append(Place(booking, line, held))

    def _is_within_own(self, tenant: UUID) -> bool:
        """Return False if the tenant holds its own already: it could not use the place, so nobody is preempted."""
        over = self.lent.over.get(tenant)
        return over is None or over + self._soon[tenant] <= 0


def _need(booking: Booked, card_memory_mib: int) -> Room:
    """Return the room that a booked place keeps free of a node: its GPUs, and one more pod."""
    if not card_memory_mib:
        return Room(booking.units_each, pods=1)
    gpus, rest = divmod(booking.units_each, GPU_IN_PERCENT)
    percent = GPU_IN_PERCENT if gpus else rest
    card = Card(card_memory_mib * percent // GPU_IN_PERCENT, percent)
    return Room(booking.units_each, pods=1, cards=(card,) * max(gpus, 1))

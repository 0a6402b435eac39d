"""Order of the waiting claims of a pool.

Claims with a free place in a booking come first. Then higher priority; then claims within their tenant's own GPUs
before claims that would borrow; in each group, claims that gave borrowed GPUs back; then the tenant with the least
use for its weight; then by arrival. Own comes before given back, or GPUs that were preempted for their owner would go
to the borrower again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator
from datetime import timedelta
from heapq import heapify, heappop, heappush
from uuid import UUID

from .shares import Share, asked_by, left_of_person
from .state import PoolState, Waiting

# A GPU held now counts as if held for this long, so that a tenant with many is not given more.
HELD_COUNTS_AS = timedelta(days=1)


def within_own(state: PoolState, stand_by: Container[UUID]) -> set[UUID]:
    """Return the claims that need not borrow if all earlier claims of their tenant have started.

    A claim that would borrow counts too, or its tenant's small claims would pass a large one for ever. A claim at a
    limit of its person, or behind such a claim, holds back nobody else.
    """
    used = {tenant: quota.used_units for tenant, quota in state.tenants.items()}
    own, at_their_limit = set(), set()
    for claim in sorted(state.waiting, key=_in_tenant):
        nominal = state.tenants[claim.tenant].nominal_units
        together = used[claim.tenant] + claim.units
        if nominal is None or not claim.units or together <= nominal:
            own.add(claim.claim)
        if _is_at_limit_of_person(state, claim):
            at_their_limit.add((claim.tenant, claim.user))
        if claim.claim not in stand_by and (claim.tenant, claim.user) not in at_their_limit:
            used[claim.tenant] = together
    return own


def _is_at_limit_of_person(state: PoolState, claim: Waiting) -> bool:
    person = state.tenants[claim.tenant].people.get(claim.user)
    if person is None:
        return False
    return bool(Share(left_of_person(person, state.units_per_gpu), state.now).broken(asked_by(claim)))


def promised(state: PoolState) -> set[UUID]:
    """Return the claims for which runs were preempted: the units are theirs, even if their tenant borrows by now."""
    asked_for = {run.reclaim_for for node in state.nodes for run in node.runs if run.in_pool}
    return {
        claim.claim
        for claim in state.waiting
        if claim.claim in asked_for and claim.units <= (state.tenants[claim.tenant].nominal_units or 0)
    }


def with_a_place(state: PoolState, stand_by: Container[UUID]) -> set[UUID]:
    """Return the claims that can use a free place of a booking that has begun."""
    begun = [booking for booking in state.bookings if booking.starts_at <= state.now < booking.ends_at]
    if not begun:
        return set()
    used = Counter(run.booking for node in state.nodes for run in node.runs)
    waiting = sorted(state.waiting, key=_in_tenant)
    found: set[UUID] = set()
    for booking in begun:
        left = booking.places - used[booking.booking]
        for claim in waiting:
            if left <= 0:
                break
            suits = claim.tenant == booking.tenant and 0 < claim.need.units <= booking.units_each
            is_able = claim.claim not in found and claim.claim not in stand_by
            if suits and is_able and claim.members <= left:  # a place for each member
                found.add(claim.claim)
                left -= claim.members
    return found


def ordered(
    state: PoolState, own: Container[UUID], booked: Container[UUID], stand_by: Container[UUID]
) -> list[Waiting]:
    """Return all waiting claims in order. Those on standby have a turn, but do not count against their tenant."""
    classes: defaultdict[tuple[bool, int, bool, bool], list[Waiting]] = defaultdict(list)
    for claim in sorted(state.waiting, key=_in_tenant):
        has_place, borrows = claim.claim in booked, claim.claim not in own
        classes[not has_place, -claim.priority, borrows, not claim.returns_first].append(claim)
    per_weight = {
        tenant: HELD_COUNTS_AS.total_seconds() / state.units_per_gpu / quota.weight
        for tenant, quota in state.tenants.items()
    }
    use = {
        tenant: quota.past_use / quota.weight + quota.used_units * per_weight[tenant]
        for tenant, quota in state.tenants.items()
    }
    queue: list[Waiting] = []
    for key in sorted(classes):
        for claim in _fairly(classes[key], use):
            queue.append(claim)
            if claim.claim not in stand_by:
                use[claim.tenant] += claim.units * per_weight[claim.tenant]
    return queue


def _in_tenant(claim: Waiting) -> tuple[int, bool, int, UUID]:
    return -claim.priority, not claim.returns_first, claim.place, claim.claim


def _fairly(claims: Iterable[Waiting], use: dict[UUID, float]) -> Iterator[Waiting]:
    """Yield the next claim of the tenant with the least `use`, which the caller raises meanwhile."""
    queues: defaultdict[UUID, list[Waiting]] = defaultdict(list)
    for claim in claims:
        queues[claim.tenant].append(claim)
    for queue in queues.values():
        queue.reverse()
    turns = [(use[tenant], queue[-1].place, tenant) for tenant, queue in queues.items()]
    heapify(turns)
    while turns:
        _use, _place, tenant = heappop(turns)
        yield queues[tenant].pop()
        if queues[tenant]:
            heappush(turns, (use[tenant], queues[tenant][-1].place, tenant))

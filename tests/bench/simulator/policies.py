"""Rules that are compared. They see the same snapshot of a pool as Berth's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from quotas.scheduling import Admitted, Decisions, PoolState, Room, decide

Policy = Callable[[PoolState], Decisions]


def fifo(state: PoolState) -> Decisions:
    """Start in order of arrival, whatever the tenant: while the first request does not fit, no other starts."""
    return _in_turn(state, dict.fromkeys(state.tenants, None))


def fifo_with_fixed_quotas(state: PoolState) -> Decisions:
    """Start in order of arrival, within each tenant's own quota; a tenant at its quota does not block others."""
    left = {tenant: (quota.nominal_units or 0) - quota.used_units for tenant, quota in state.tenants.items()}
    return _in_turn(state, left)


def _in_turn(state: PoolState, left: Mapping[UUID, int | None]) -> Decisions:
    left, free = dict(left), {node.name: node.free for node in state.nodes}
    admitted = []
    full: set[UUID] = set()
    for claim in sorted(state.waiting, key=lambda claim: claim.place):
        own = left[claim.tenant]
        if claim.tenant in full or (own is not None and own < claim.need.units):
            full.add(claim.tenant)
            continue
        node = _fullest(free, claim.need)
        if node is None:
            break
        free[node] -= claim.need
        left[claim.tenant] = None if own is None else own - claim.need.units
        admitted.append(Admitted(claim.claim, (node,)))
    return Decisions(tuple(admitted), ())


def _fullest(free: Mapping[str, Room], need: Room) -> str | None:
    fitting = [(room.units, name) for name, room in free.items() if room.holds(need)]
    return min(fitting)[1] if fitting else None


POLICIES: Mapping[str, Policy] = {
    "Berth": decide,
    "FIFO": fifo,
    "FIFO, fixed quotas": fifo_with_fixed_quotas,
}

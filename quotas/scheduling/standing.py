"""Claims on standby: they have a place in the queue but cannot start whatever is free, so nobody waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from .state import BACK_OFF_MOST, PoolState, Reason, Room, Waiting
from .why import never, too_large, with_out


def standing_by(state: PoolState) -> Mapping[UUID, Reason]:
    """Return the claims on standby, each with its reason."""
    rooms = [node.without_ours for node in state.nodes]
    too_large_for_all: dict[Room, Reason | None] = {}
    found = {}
    for claim in state.waiting:
        if claim.need not in too_large_for_all:
            found_large = too_large(rooms, claim.need, state.units_per_gpu)
            too_large_for_all[claim.need] = found_large and with_out(found_large, state)
        reason = _reason(state, claim, too_large_for_all[claim.need])
        if reason is not None:
            found[claim.claim] = reason
    return found


def backs_off(state: PoolState, claim: Waiting) -> bool:
    """Return True while in back-off. A longer one than BACK_OFF_MOST predates a clock set back: it is over."""
    return claim.not_before is not None and state.now < claim.not_before <= state.now + BACK_OFF_MOST


def _reason(state: PoolState, claim: Waiting, too_large_for_all: Reason | None) -> Reason | None:
    quota = state.tenants[claim.tenant]
    if backs_off(state, claim):
        return claim.reason
    if not state.is_open:
        return Reason("pool_closed")
    if not state.nodes:
        return with_out(Reason("no_node_ready"), state)
    reason = never(claim, quota, state.units_per_gpu) or too_large_for_all
    return reason or quota.blocked or quota.blocked_people.get(claim.user)

"""Decisions on a pool's waiting claims: which start now, on which node, and why others wait. No database, no clock.

The walk along the queue gives each claim a place in it (`walk.py`). These functions return the result: decisions, the
starts that the same rules foresee, and how long a run may go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from .state import Decisions, PoolState, Reason, Room, Run, Waiting, Waits, as_gpus
from .timeline import FOREVER, Held, NodeLine, known_end
from .walk import Walk
from .why import shortage, with_out


def decide(state: PoolState) -> Decisions:
    """Decide on the queue in one walk from its front."""
    return decided(Walk(state))


def decided(walk: Walk) -> Decisions:
    """Return what a walk along the queue decided."""
    why = _Why(walk)
    waits: list[Waits] = []
    units_ahead = 0
    for claim in walk.order:
        if claim.claim not in walk.admitted:
            waits.append(Waits(claim.claim, len(waits) + 1, why.of(claim), units_ahead))
            units_ahead += claim.units
    return Decisions(
        tuple(walk.admitted.values()), tuple(waits), tuple(walk.lent.reclaims), walk.lent.cancelled
    )


def plan(
    state: PoolState,
    ends_of: Callable[[Run], datetime | None] = known_end,
    lasts_of: Callable[[Waiting], timedelta | None] = lambda claim: claim.lasts,
) -> dict[UUID, datetime | None]:
    """Return the start of each claim by the same rules, if `ends_of` and `lasts_of` are right; None: unknown."""
    waiting = tuple(replace(claim, lasts=lasts_of(claim)) for claim in state.waiting)
    walk = Walk(replace(state, waiting=waiting), ends_of)
    starts: dict[UUID, datetime | None] = {}
    for claim in walk.order:
        if claim.claim in walk.admitted:
            starts[claim.claim] = state.now
        elif claim.claim in walk.reserved:
            start = walk.reserved[claim.claim].start
            starts[claim.claim] = None if start == FOREVER else start
    # A claim at a limit reserves nothing, so it is placed after the others.
    for claim in walk.order:
        if claim.claim not in starts:
            starts[claim.claim] = walk.later(claim)
    return starts


def kept_now(state: PoolState) -> dict[str, int]:
    """Return the units kept free for bookings that have begun, by node."""
    kept: Counter[str] = Counter()
    for line in Walk(replace(state, waiting=())).nodes.lines:
        for held in line.held:
            if held.is_booking and held.start <= state.now:
                kept[line.name] += held.need.units
    return dict(kept)


def may_last_until(state: PoolState, run: UUID) -> datetime | None:
    """Return until when a run may be extended without taking room kept for others; None: without end."""
    walk = Walk(state)
    ends = []
    for line in walk.nodes.lines:
        there = [
            (one, end)
            for one, end in zip(line.runs, line.ends, strict=True)
            if one.claim == run and end != FOREVER
        ]
        if there:
            one, end = there[0]
            ends.append(line.holds_until(one.takes, end, len(there)))
    until = min(ends, default=FOREVER)
    return None if until == FOREVER else until


class _Why:
    """Reasons for the claims that wait, once the starts are decided."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.per_gpu = walk.state.units_per_gpu
        self.numbers = {claim.claim: number for number, claim in enumerate(walk.order)}
        self.units = {claim.claim: claim.units for claim in walk.order}
        self._free: dict[Room, NodeLine | Reason] = {}
        self._fits: dict[tuple[Room, int], dict[NodeLine, int]] = {}

    def of(self, claim: Waiting) -> Reason:
        walk = self.walk
        if reason := walk.standing_by.get(claim.claim) or walk.limited.get(claim.claim):
            return reason
        reserved = walk.reserved[claim.claim]
        if reserved.is_reclaimed:
            at = reserved.start.replace(second=0, microsecond=0).isoformat()
            return Reason("waits_for_reclaim", {"gpus": as_gpus(claim.units, self.per_gpu), "at": at})
        if claim.members > 1:
            return self._of_gang(claim)
        free = self._free_for(claim.need)
        return free if isinstance(free, Reason) else self._kept(claim, free.held)

    def _of_gang(self, claim: Waiting) -> Reason:
        """Return how many members have room now, or for whom the room of all is kept."""
        asked = claim.need, claim.members
        if asked not in self._fits:
            self._fits[asked] = {line: line.free.count(*asked) for line in self.walk.nodes.lines}
        fits = self._fits[asked]
        if sum(fits.values()) >= claim.members:
            return self._kept(claim, [one for line, number in fits.items() if number for one in line.held])
        if claim.need.only is not None:
            return Reason("volume_node_busy", {"on": sorted(claim.need.only)})
        figures = {"nodes": claim.members, "fitting": sum(fits.values())}
        return with_out(Reason("no_room_for_all", figures), self.walk.state)

    def _free_for(self, need: Room) -> NodeLine | Reason:
        """Return the fullest node that has room for the need now, or the reason that none has."""
        if need not in self._free:
            lines = self.walk.nodes.lines
            fitting = [line for line in lines if line.free.holds(need)]
            self._free[need] = (
                min(fitting, key=lambda line: line.free.units)
                if fitting
                else with_out(shortage([line.free for line in lines], need, self.per_gpu), self.walk.state)
            )
        return self._free[need]

    def _kept(self, claim: Waiting, held: list[Held]) -> Reason:
        """Return for whom the free room is kept: a booking, a larger claim or others ahead."""
        booked = [one for one in held if one.is_booking]
        if booked:
            return Reason("booked", {"from": min(one.start for one in booked).isoformat()})
        number = self.numbers[claim.claim]
        larger = [
            self.units[one.owner]
            for one in held
            if self.numbers[one.owner] < number and self.units[one.owner] > claim.units
        ]
        if larger:
            return Reason("behind_larger", {"gpus": as_gpus(max(larger), self.per_gpu)})
        return Reason("behind_others")

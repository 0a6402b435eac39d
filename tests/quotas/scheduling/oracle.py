"""Brute-force search for waiting claims that could have started, without the code of the rules. Whole units only.

Nodes, tenants and people are places. A place has amounts left (units, CPU, memory, pods or workspaces). Amounts are
taken for a time: by started claims, by bookings, and for waiting claims in their order. A waiting claim takes the
earliest start possible, on the first node by name that has room; without a known end, on the node that lacks least.
A claim of several members takes the earliest start at which all fit, on the nodes with room for most of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any
from uuid import UUID

from quotas.scheduling import BACK_OFF_MOST, Decisions, PoolState, Room, Waiting

END = datetime.max.replace(tzinfo=UTC)
SOON = timedelta(minutes=1)
Amounts = tuple[float, ...]
Taken = tuple[Any, Amounts, datetime, datetime]


def could_have_started(state: PoolState, decisions: Decisions, queue: Sequence[UUID] = ()) -> list[UUID]:
    return [claim for claim, start in starts(state, decisions, queue).items() if start == state.now]


def starts(  # noqa: C901 - on one page
    state: PoolState, decisions: Decisions, queue: Sequence[UUID] = ()
) -> dict[UUID, datetime]:
    """Return the earliest start of each claim that waits for room alone; END if no known end makes it fit.

    With the order of all in `queue`, a limit filled in this pass by a later claim does not block earlier ones.
    """
    now, found, claims = state.now, dict[UUID, datetime](), {claim.claim: claim for claim in state.waiting}
    names, (left, most) = sorted(node.name for node in state.nodes), places(state)
    taken, closed = [*given_back(state)], set[Any]()
    filled: dict[UUID, list[Taken]] = {}

    def room(place: Any, time: datetime) -> list[float]:
        there = [amounts for at, amounts, on, off in taken if at == place and on <= time < off]
        return [have - sum(each) for have, *each in zip(left[place], *there, strict=True)]

    def broken(place: Any, asked: Amounts, start: datetime, until: datetime) -> set[Any]:
        times = {start, *(t for at, _, *both in taken if at == place for t in both if start < t < until)}
        axes = [i for i in range(4) if asked[i] or place in names]
        return {(place, i) for t in times for i in axes if asked[i] > room(place, t)[i]}

    def first(
        need: Amounts,
        lasts: timedelta | None,
        starts: Iterable[datetime],
        else_at: datetime,
        only: Any = None,
    ) -> Any:
        able = [name for name in names if fits(need, most[name]) and (only is None or name in only)]
        for start, name in ((start, name) for start in sorted(starts) for name in able):
            if not broken(name, need, start, after(start, lasts)):
                return name, start
        lacks = {n: [max(much, 0) for much in less(need, room(n, else_at))] for n in able}
        return min(able, key=lambda n: (lacks[n], n)), END

    def first_of_all(claim: Waiting, starts: Iterable[datetime]) -> Any:
        need, members = vector(claim.need), claim.members
        able = {
            n: many(need, most[n], members) for n in names if claim.need.only is None or n in claim.need.only
        }
        for start in sorted(starts):
            until = after(start, claim.lasts)
            fitting = {
                n: max(
                    (k for k in range(1, able[n] + 1) if not broken(n, times(need, k), start, until)),
                    default=0,
                )
                for n in able
            }
            if sum(fitting.values()) >= members:
                return packed(fitting, members), start
        chosen: list[str] = []
        for _member in range(members):
            lacks = {
                n: [max(much, 0) for much in less(times(need, chosen.count(n) + 1), room(n, END - SOON))]
                for n in able
                if chosen.count(n) < able[n]
            }
            chosen.append(min(lacks, key=lambda n: (lacks[n], n)))
        return chosen, END

    def lucky(name: str, need: Amounts, moments: Iterable[datetime]) -> datetime:
        there = less(need, endless[name])
        return next((t for t in sorted(moments) if fits(there, room(name, t))), now)

    endless = {name: less(most[name], room(name, END - SOON)) for name in names}
    for admitted in decisions.admitted:
        claim = claims[admitted.claim]
        until = min(after(now, claim.lasts), admitted.must_end_at or END)
        taken += [(node, vector(claim.need), now, until) for node in admitted.nodes]
        filled[claim.claim] = [(at, asks(claim, at, names), now, until) for at in own(claim, left)]
    for back, asked, need, start, until in booked(state, decisions):
        taken += back
        there = [(most[name][0], name) for name in names if not broken(name, need, start, until)]
        late = max(start, now + state.grace)
        there = there or [(0, name) for name in asked if not broken(name, need, late, until)]
        taken.append((min(there)[1] if there else first(need, None, [], start)[0], need, start, until))
    for claim in (claims[waits.claim] for waits in decisions.waits):
        if stands_by(state, claim, most):
            continue
        need, until, mine = vector(claim.need), after(now, claim.lasts), own(claim, left)
        before = queue[: queue.index(claim.claim)] if queue else [*filled]
        taken += [each for one in before for each in filled.pop(one, ())]
        full = {bad for at in mine for bad in broken(at, asks(claim, at, names), now, until)}
        full |= {(at, i) for at, i in closed if at in mine and asks(claim, at, names)[i]}
        closed |= full
        if full:
            continue
        taken += (asked := [*sooner(state, decisions, claim.claim)])
        back = max([now, *(end for _, _, end, _ in asked)])
        moments = {back, *(t for *_, on, off in taken for t in (on, off) if back < t < END)}
        if claim.members > 1:
            chosen, start = first_of_all(claim, moments)
        else:
            name, start = first(need, claim.lasts, moments, END - SOON, claim.need.only)
            chosen = [name]
        found[claim.claim] = start
        until = after(start, claim.lasts)
        if start == END:  # reserve from when it would fit without the runs of unknown end
            start = max(lucky(n, times(need, chosen.count(n)), moments) for n in chosen)
        taken += [(at, need, start, until) for at in chosen]
        taken += [(at, asks(claim, at, names), start, until) for at in mine]
    return found


def places(state: PoolState) -> tuple[dict[Any, Amounts], dict[Any, Amounts]]:
    """Return the amounts left at each place, and the most it can have."""
    left: dict[Any, Amounts] = {node.name: vector(node.free) for node in state.nodes}
    most: dict[Any, Amounts] = {node.name: vector(node.without_ours) for node in state.nodes}
    for tenant, q in state.tenants.items():
        limits: Any = (q.limit_units, q.limits.cpu_millicores, q.limits.memory_mib, q.limits.workspaces)
        used: Any = (q.used_units, q.used.cpu_millicores, q.used.memory_mib, q.used.workspaces)
        people = {
            (tenant, user): (
                (
                    None if p.most_gpus is None else p.most_gpus * state.units_per_gpu,
                    None,
                    None,
                    p.most_workspaces,
                ),
                (p.gpus * state.units_per_gpu, 0, 0, p.workspaces),
            )
            for user, p in q.people.items()
        }
        everybody: dict[Any, Any] = {tenant: (limits, used), **people}
        for place, (limit, has) in everybody.items():
            most[place] = tuple(inf if amount is None else amount for amount in limit)
            left[place] = tuple(amount - (held or 0) for amount, held in zip(most[place], has, strict=True))
    return left, most


def given_back(state: PoolState) -> Iterator[Taken]:
    for node in state.nodes:
        for run in node.runs:
            ends = [run.ends_at, run.reclaim_at if run.reclaim_at and run.reclaim_at <= state.now else None]
            end = min((end for end in ends if end is not None), default=END)
            end = end if end > state.now else state.now + max(SOON, state.now - end)
            units, cpu, memory, pods = vector(run.takes)
            yield node.name, (-units, -cpu, -memory, -pods), end, END
            for place in (run.tenant, (run.tenant, run.user)):
                yield place, (-units if run.in_pool else 0, -cpu, -memory, -int(run.is_workspace)), end, END


def sooner(state: PoolState, decisions: Decisions, beneficiary: UUID) -> Iterator[Taken]:
    """Yield what preempted runs give back for this beneficiary before their own end."""
    told = {reclaim.run: reclaim.beneficiary for reclaim in decisions.reclaims}
    for node in state.nodes:
        for run in node.runs:
            still = run.reclaim_at and run.reclaim_at > state.now and run.claim not in decisions.cancelled
            if told.get(run.claim, run.reclaim_for if still else None) == beneficiary:
                back, end = (
                    tuple(-amount for amount in vector(run.takes)),
                    run.reclaim_at or state.now + state.grace,
                )
                yield node.name, back, end, run.ends_at or END


def booked(state: PoolState, decisions: Decisions) -> Iterator[Any]:
    """Yield per free place of a booking what comes back for it and the next, their nodes, need, start and end."""
    used = [run.booking for node in state.nodes for run in node.runs]
    used += [admitted.booking for admitted in decisions.admitted]
    for booking in sorted(state.bookings, key=lambda booking: (booking.starts_at, booking.booking)):
        start, back = max(booking.starts_at, state.now), [*sooner(state, decisions, booking.booking)]
        asked = sorted({node for node, *_ in back})
        for place in range(booking.places - used.count(booking.booking)):
            if any(node.without_ours.units >= booking.units_each for node in state.nodes):
                yield [] if place else back, asked, (booking.units_each, 0, 0, 1), start, booking.ends_at


def stands_by(state: PoolState, claim: Waiting, most: dict[Any, Amounts]) -> bool:
    """Return True if the claim may not start whatever is free, and so blocks nobody."""
    quota, names = state.tenants[claim.tenant], [node.name for node in state.nodes]
    backs_off = claim.not_before and state.now < claim.not_before <= state.now + BACK_OFF_MOST
    blocked = quota.blocked or quota.blocked_people.get(claim.user) or not state.is_open
    above = any(not fits(asks(claim, place, names), most[place]) for place in own(claim, most))
    able = [n for n in names if claim.need.only is None or n in claim.need.only]
    places = sum(many(vector(claim.need), most[n], claim.members) for n in able)
    return bool(backs_off or blocked or above or places < claim.members)


def own(claim: Waiting, known: dict[Any, Amounts]) -> list[Any]:
    return [place for place in (claim.tenant, (claim.tenant, claim.user)) if place in known]


def asks(claim: Waiting, place: Any, nodes: list[str]) -> Amounts:
    """Return what one member asks of a node, and all together of their tenant and person."""
    need = vector(claim.need)
    return need if place in nodes else (*times(need, claim.members)[:3], int(claim.is_workspace))


def times(need: Amounts, members: int) -> Amounts:
    return tuple(members * amount for amount in need)


def many(need: Amounts, there: Amounts, members: int) -> int:
    """Return how many members fit, up to all."""
    return max((k for k in range(1, members + 1) if fits(times(need, k), there)), default=0)


def packed(fitting: dict[str, int], members: int) -> list[str]:
    """Return a node for each member: the least that has room for all that are left, or else the one for most."""
    left, chosen = dict(sorted(fitting.items())), list[str]()
    while (rest := members - len(chosen)) > 0:
        enough = [n for n in left if left[n] >= rest]
        name = min(enough, key=lambda n: left[n]) if enough else max(left, key=lambda n: left[n])
        chosen += [name] * min(rest, left.pop(name))
    return chosen


def vector(room: Room) -> Amounts:
    return room.units, room.cpu_millicores, room.memory_mib, room.pods


def fits(asked: Iterable[float], there: Iterable[float]) -> bool:
    return all(a <= b for a, b in zip(asked, there, strict=True))


def less(some: Iterable[float], others: Iterable[float]) -> Amounts:
    return tuple(a - b for a, b in zip(some, others, strict=True))


def after(start: datetime, lasts: timedelta | None) -> datetime:
    return END if lasts is None or start == END else start + lasts

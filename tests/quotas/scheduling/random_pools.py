"""Random small pools, for properties that must hold of every decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.scheduling import (
    Booked,
    Limits,
    NodeState,
    PersonUse,
    PoolState,
    Reason,
    Room,
    Run,
    TenantQuota,
    Waiting,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TENANTS = [UUID(int=number) for number in (1, 2, 3)]
WHOLE = Room(4, 16, 16, 8)
MINUTES = st.sampled_from((5, 12, 30, 60, 120))
KEPT = Reason("kept")
# Where a claim's volumes may be; the last is of no pool here.
BOUND = (frozenset({"node-0"}), frozenset({"node-0", "node-2"}), frozenset({"node-9"}))


def of_any(
    *drawn: st.SearchStrategy[Any], few: int = 15, more: int = 100, many: int = 400
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """Make a test of a property on a few random examples; slow and long runs take more and many."""

    def of(holds: Callable[..., None]) -> Callable[[int], None]:
        long = [pytest.mark.long, pytest.mark.timeout(600)]
        cases = [few, pytest.param(more, marks=pytest.mark.slow), pytest.param(many, marks=long)]

        @pytest.mark.parametrize("examples", cases)
        def test(examples: int) -> None:
            settings(max_examples=examples, deadline=None)(given(*drawn)(holds))()

        return test

    return of


@st.composite
def pools(draw: st.DrawFn, *, bookings: int = 2, asked: bool = True, gangs: bool = False) -> PoolState:
    nodes = [draw(_nodes(number, asked)) for number in range(draw(st.integers(1, 3)))]
    if gangs:
        nodes = [*_with_a_gang(draw, nodes)]
    waiting = [draw(_waiting(place, gangs)) for place in range(draw(st.integers(0, 6)))]
    return PoolState(
        units_per_gpu=draw(st.sampled_from((1, 1, 2))),
        nodes=tuple(nodes),
        waiting=tuple(waiting),
        tenants={tenant: draw(_quotas(tenant, nodes)) for tenant in TENANTS},
        now=NOW,
        bookings=tuple(draw(_booked(number)) for number in range(draw(st.integers(0, bookings)))),
    )


@st.composite
def _nodes(draw: st.DrawFn, number: int, asked: bool) -> NodeState:
    name = f"node-{number}"
    whole = replace(WHOLE, node=name)
    free, runs = whole, []
    for at in range(draw(st.integers(0, 4))):
        takes = Room(draw(st.sampled_from((1, 1, 2, 3))), draw(st.integers(1, 6)), draw(st.integers(1, 6)), 1)
        if free.holds(takes):
            free -= takes
            runs.append(draw(_runs(UUID(int=100 * (number + 1) + at), takes, asked)))
    return NodeState(name, free, whole, tuple(runs))


def _with_a_gang(draw: st.DrawFn, nodes: list[NodeState]) -> Iterator[NodeState]:
    """Yield the nodes with a claim of several members, on those that have room for one or more."""
    takes = Room(draw(st.sampled_from((1, 1, 2))), 1, 1, 1)
    places = [
        node.name for node in nodes for _ in range(min(node.free.count(takes, 2), draw(st.integers(0, 2))))
    ]
    run = replace(
        draw(_runs(UUID(int=900), takes, False)), members=max(len(places), 1), is_workspace=len(places) < 2
    )
    for node in nodes:
        free = node.free
        for _member in range(here := places.count(node.name)):
            free -= takes
        yield replace(node, free=free, runs=(*node.runs, *[run] * here))


@st.composite
def _runs(draw: st.DrawFn, claim: UUID, takes: Room, asked: bool) -> Run:
    lasts, is_asked = draw(st.none() | MINUTES), asked and draw(st.integers(0, 5)) == 0
    return Run(
        claim=claim,
        tenant=draw(st.sampled_from(TENANTS)),
        user=draw(st.integers(1, 2)),
        takes=takes,
        admitted_at=NOW - timedelta(minutes=draw(st.integers(1, 1000))),
        ends_at=None if lasts is None else NOW + timedelta(minutes=lasts),
        reclaim_at=NOW + timedelta(minutes=draw(st.sampled_from((-1, 4, 9)))) if is_asked else None,
        reclaim_for=UUID(int=1000) if is_asked else None,
        is_workspace=draw(st.booleans()),
    )


@st.composite
def _waiting(draw: st.DrawFn, place: int, gangs: bool = False) -> Waiting:
    lasts = draw(st.none() | MINUTES)
    members = draw(st.sampled_from((1, 2, 2, 3, 4))) if gangs else 1
    return Waiting(
        claim=UUID(int=1000 + place),
        tenant=draw(st.sampled_from(TENANTS)),
        need=Room(
            draw(st.sampled_from((1, 1, 2, 3, 4, 5))),
            draw(st.integers(1, 6)),
            draw(st.integers(1, 6)),
            1,
            only=draw(st.sampled_from((None, None, None, *BOUND))),
        ),
        priority=draw(st.sampled_from((0, 0, 0, 1))),
        place=place,
        is_workspace=draw(st.booleans()) and members == 1,
        not_before=draw(st.sampled_from((None, None, None, NOW, NOW + timedelta(seconds=1)))),
        reason=KEPT,
        user=draw(st.integers(1, 2)),
        lasts=None if lasts is None else timedelta(minutes=lasts),
        returns_first=draw(st.integers(0, 5)) == 0,
        members=members,
    )


@st.composite
def _quotas(draw: st.DrawFn, tenant: UUID, nodes: list[NodeState]) -> TenantQuota:
    runs = [run for node in nodes for run in node.runs if run.tenant == tenant]
    nominal = draw(st.none() | st.integers(0, 8) | st.integers(2, 12))
    limit = st.none() | st.none() | st.integers(0, 40)
    held = Counter(run.user for run in runs for _unit in range(run.takes.units))
    spaces = Counter(run.user for run in runs if run.is_workspace)
    return TenantQuota(
        used_units=sum(run.takes.units for run in runs) + draw(st.sampled_from((0, 0, 2))),
        limit_units=None if nominal is None else nominal + draw(st.sampled_from((0, 4))),
        used=Limits(
            sum(run.takes.cpu_millicores for run in runs),
            sum(run.takes.memory_mib for run in runs),
            sum(spaces.values()),
        ),
        limits=Limits(draw(limit), draw(limit), draw(st.none() | st.none() | st.integers(0, 5))),
        nominal_units=nominal,
        weight=draw(st.integers(1, 2)),
        past_use=draw(st.sampled_from((0.0, 0.0, 90_000.0))),
        people={
            user: PersonUse(
                Fraction(held[user]), spaces[user], draw(limit), draw(st.none() | st.integers(0, 3))
            )
            for user in draw(st.sets(st.integers(1, 2), max_size=1))
        },
        blocked=draw(st.sampled_from((*[None] * 9, Reason("budget_spent")))),
    )


@st.composite
def _booked(draw: st.DrawFn, number: int) -> Booked:
    starts = NOW + timedelta(minutes=draw(st.sampled_from((-5, 5, 20, 60))))
    ends = starts + timedelta(minutes=draw(st.sampled_from((20, 60))))
    places, units = draw(st.integers(1, 2)), draw(st.sampled_from((1, 1, 2, 4)))
    return Booked(UUID(int=2000 + number), draw(st.sampled_from(TENANTS)), starts, ends, places, units)

"""Decisions on random pools, judged by brute force: all claims that could start have started, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import chain, combinations
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from quotas.scheduling import (
    OWNER_WAITS,
    NodeState,
    PoolState,
    Room,
    Run,
    TenantQuota,
    Waiting,
    decide,
    plan,
)
from quotas.scheduling.walk import Walk
from tests.quotas.scheduling.applying import applied, at_next_end
from tests.quotas.scheduling.oracle import END, after, could_have_started, starts
from tests.quotas.scheduling.random_pools import MINUTES, NOW, TENANTS, of_any, pools

SOON = NOW + timedelta(minutes=10)
HOUR = timedelta(hours=1)


@of_any(pools(bookings=0), many=2000)
def test_no_waiting_claim_could_have_started_without_delaying_an_earlier_one(state: PoolState) -> None:
    queue = [claim.claim for claim in Walk(state).order]
    assert could_have_started(state, decide(state), queue) == []


@of_any(pools(bookings=0, gangs=True), few=30, many=2000)
def test_no_waiting_gang_or_claim_beside_it_could_have_started(state: PoolState) -> None:
    queue = [claim.claim for claim in Walk(state).order]
    assert could_have_started(state, decide(state), queue) == []


@of_any(pools(bookings=0))
def test_no_started_claim_delays_an_earlier_one(state: PoolState) -> None:
    decisions = decide(state)
    queue = [claim.claim for claim in Walk(state).order]
    told, tenants = starts(state, decisions), {claim.claim: claim.tenant for claim in state.waiting}
    give_back = {run.tenant for node in state.nodes for run in node.runs if run.ends_at or run.reclaim_at}
    for one in decisions.admitted:
        others = tuple(admitted for admitted in decisions.admitted if admitted is not one)
        without = starts(
            replace(state, waiting=tuple(claim for claim in state.waiting if claim.claim != one.claim)),
            replace(decisions, admitted=others),
        )
        lasts = next(claim.lasts for claim in state.waiting if claim.claim == one.claim)
        over = min(after(NOW, lasts), one.must_end_at or END)  # until then others wait for a limit
        for claim in queue[: queue.index(one.claim)]:
            # A limit that is full now may be free by then, as a run ends.
            is_free_by_then = claim not in told and tenants[claim] in give_back
            assert claim not in without or told.get(claim, over) <= without[claim] or is_free_by_then


@of_any(pools(gangs=True), st.randoms(use_true_random=False))
def test_the_order_of_what_is_read_changes_nothing(state: PoolState, random: Random) -> None:
    def shuffled(some: Iterable[Any]) -> tuple[Any, ...]:
        items = list(some)
        return tuple(random.sample(items, len(items)))

    mixed = replace(
        state,
        nodes=shuffled(replace(node, runs=shuffled(node.runs)) for node in state.nodes),
        waiting=shuffled(state.waiting),
        bookings=shuffled(state.bookings),
        tenants=dict(shuffled(state.tenants.items())),
    )
    assert decide(mixed) == decide(state)


@of_any(pools(bookings=0, gangs=True))
def test_a_preemption_stays_while_nothing_changes(state: PoolState) -> None:
    decisions = decide(state)
    assert not decide(applied(state, decisions)).cancelled


@of_any(pools(asked=False, gangs=True), many=1000)
def test_repeated_passes_come_to_rest(state: PoolState) -> None:
    """A pass may lead to more in the next: a tenant that begins to borrow may be preempted there.

    A run that takes a booked place late may also leave room for others there.
    """
    cancelled: set[UUID] = set()
    for _look in range(5):
        decisions = decide(state)
        assert not {one.run for one in decisions.reclaims} & cancelled
        cancelled |= set(decisions.cancelled)
        again = applied(state, decisions)
        if again == state:
            assert could_have_started(state, decisions) == []
            return
        state = again
    raise AssertionError("it never comes to rest")


@of_any(pools(bookings=0, asked=False))
def test_a_second_pass_starts_and_preempts_nothing_if_no_tenant_began_to_borrow(state: PoolState) -> None:
    decisions = decide(state)
    after = applied(state, decisions)
    borrow = {tenant for tenant, quota in after.tenants.items()
              if quota.nominal_units is not None and quota.used_units > quota.nominal_units}  # fmt: skip
    began = {claim.tenant for claim in state.waiting if claim not in after.waiting}
    again = decide(after)
    if not began & borrow:
        assert not again.admitted
        assert not again.reclaims


@of_any(pools(bookings=0, asked=False))
def test_only_needed_borrowed_runs_are_preempted(state: PoolState) -> None:
    decisions = decide(state)
    runs = {run.claim: run for node in state.nodes for run in node.runs}
    for tenant, quota in applied(state, decisions).tenants.items():
        asked = sum(runs[one.run].takes.units for one in decisions.reclaims if runs[one.run].tenant == tenant)
        largest = max(
            (runs[one.run].takes.units for one in decisions.reclaims if runs[one.run].tenant == tenant),
            default=0,
        )
        # Only one of the preempted runs may be partly on its tenant's own GPUs.
        assert not asked or quota.used_units - (asked - largest) > (quota.nominal_units or 0)
    for one in decisions.reclaims:
        others = tuple(reclaim for reclaim in decisions.reclaims if reclaim is not one)
        told, without = (
            starts(state, replace(decisions, reclaims=asked)) for asked in (decisions.reclaims, others)
        )
        if one.code == OWNER_WAITS and one.beneficiary in told:
            assert told[one.beneficiary] <= NOW + state.grace < without[one.beneficiary]


@of_any(pools(bookings=0, asked=False))
def test_the_fewest_runs_on_any_node_are_preempted_for_the_first_owner(state: PoolState) -> None:
    owner = Waiting(UUID(int=1), UUID(int=9), Room(3, 4, 4, 1), 9, 0)
    quotas = {**state.tenants, owner.tenant: TenantQuota(0, 4, nominal_units=4)}
    decisions = decide(replace(state, waiting=(owner,), tenants=quotas))
    if not decisions.admitted:
        fewest = [
            [len(runs) for node in state.nodes for runs in enough(state, node, owner.need, partly_own)]
            for partly_own in (False, True)
        ]
        assert len(decisions.reclaims) == min(fewest[0] or fewest[1], default=0)


@of_any(st.lists(st.integers(1, 3), min_size=40, max_size=40), st.randoms(use_true_random=False))
def test_a_large_request_starts_after_finitely_many_ends(sizes: list[int], random: Random) -> None:
    """Runs have no known end; after one ends, a small request of another tenant comes."""
    quota = TenantQuota(0, None)
    nodes = [NodeState(f"node-{number}", Room(4, 99, 99, 99), Room(4, 99, 99, 99)) for number in range(3)]
    small = [
        Waiting(UUID(int=100 + at), TENANTS[1], Room(units, 1, 1, 1), 0, at) for at, units in enumerate(sizes)
    ]
    large = Waiting(UUID(int=1), TENANTS[0], Room(4, 1, 1, 1), 0, 10)
    state = PoolState(1, tuple(nodes), tuple(small[:10]), dict.fromkeys(TENANTS, quota), NOW)
    state = applied(state, decide(state))
    state = replace(state, waiting=(*state.waiting, large))
    for at, came in enumerate(small[10:]):
        if large not in state.waiting:
            return
        there = sorted((run for node in state.nodes for run in node.runs), key=lambda run: run.claim)
        ending = there[0] if at % 2 else random.choice(there)  # every run ends at last
        left = [
            replace(node, free=node.free.with_back(ending.takes, node.without_ours),
                    runs=tuple(run for run in node.runs if run != ending)) if ending in node.runs else node
            for node in state.nodes
        ]  # fmt: skip
        tenants = {TENANTS[0]: replace(quota, past_use=1e9), TENANTS[1]: replace(quota, past_use=2e9)}
        state = replace(state, nodes=tuple(left), waiting=(*state.waiting, came), tenants=tenants)
        state = applied(state, decide(state))
    assert large not in state.waiting


@of_any(pools(bookings=0, asked=False), st.lists(st.tuples(st.integers(1, 2), MINUTES), max_size=30))
def test_the_planned_start_of_the_first_request_never_moves_later(
    state: PoolState, small: list[tuple[int, int]]
) -> None:
    """Runs end as planned; after one ends, a small request comes that would fit at once."""
    nodes = [
        replace(node, runs=tuple(replace(run, ends_at=run.ends_at or NOW + 3 * HOUR) for run in node.runs))
        for node in state.nodes
    ]
    first = Waiting(UUID(int=1), TENANTS[0], Room(3, 8, 8, 1), 9, 0, lasts=HOUR)
    others = [replace(claim, lasts=claim.lasts or HOUR) for claim in state.waiting]
    free = dict.fromkeys(TENANTS, TenantQuota(0, None))
    state = PoolState(1, tuple(nodes), (first, *others), free, NOW)
    coming = [
        Waiting(UUID(int=3000 + at), TENANTS[1], Room(units, 1, 1, 1), 0, 100 + at, lasts=timedelta(minutes=lasts))
        for at, (units, lasts) in enumerate(small)
    ]  # fmt: skip
    told = plan(state)[first.claim]
    assert told is not None
    while first in state.waiting:
        start = plan(state)[first.claim]
        assert start is not None and state.now <= start <= told
        told = start
        state = applied(state, decide(state))
        if first in state.waiting:
            state = at_next_end(state)
            state = replace(state, waiting=(*state.waiting, *coming[:1]))
            coming = coming[1:]


def enough(state: PoolState, node: NodeState, need: Room, partly_own: bool) -> Iterator[tuple[Run, ...]]:
    """Yield sets of borrowed runs to preempt so that the need fits, once runs that end soon are gone."""
    gone = [run for run in node.runs if run.ends_at is not None and run.ends_at <= SOON]
    over = Counter({tenant: q.used_units - (q.nominal_units or 0) for tenant, q in state.tenants.items()})
    over.subtract(
        {tenant: sum(run.takes.units for n in state.nodes for run in n.runs if run.tenant == tenant
                     and run.ends_at is not None and run.ends_at <= SOON) for tenant in state.tenants}
    )  # fmt: skip
    lent = [
        run for run in node.runs if run not in gone and state.tenants[run.tenant].nominal_units is not None
    ]
    for some in chain.from_iterable(combinations(lent, number) for number in range(len(lent) + 1)):
        back = Counter(run.tenant for run in some for _unit in range(run.takes.units))
        if partly_own:  # allowed for the largest run of each tenant
            back = Counter({tenant: units + 1 - max(run.takes.units for run in some if run.tenant == tenant)
                            for tenant, units in back.items()})  # fmt: skip
        free = node.free
        for run in (*gone, *some):
            free = free.with_back(run.takes, node.without_ours)
        if free.holds(need) and all(over[tenant] >= units for tenant, units in back.items()):
            yield some

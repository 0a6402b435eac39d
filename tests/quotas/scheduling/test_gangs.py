"""Claims of several members, on plain values: placed as a whole, reserved as a whole, preempted as a whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from time import process_time
from uuid import UUID

from hypothesis import strategies as st

from quotas.scheduling import (
    BOOKING_BEGINS,
    OWNER_WAITS,
    Booked,
    Card,
    Decisions,
    NodeState,
    PoolState,
    Reason,
    Room,
    Run,
    TenantQuota,
    Waiting,
    decide,
    may_last_until,
    plan,
)
from quotas.scheduling.forecast import forecast
from quotas.scheduling.lengths import Lengths
from quotas.scheduling.walk import Walk
from tests.quotas.scheduling.applying import applied, at_next_end
from tests.quotas.scheduling.random_pools import of_any, pools
from tests.quotas.scheduling.values import (
    DEMO,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    asks,
    codes,
    decided,
    node,
    numbers,
    pool,
    reasons,
    runs,
    started,
)


def placed(decisions: Decisions) -> list[tuple[str, ...]]:
    return [admitted.nodes for admitted in decisions.admitted]


def gang_on(*names: str, gpus: int = 4, **values: object) -> dict[str, Run]:
    """Return the runs of one claim by node: a member on each."""
    run = replace(runs(gpus, **values), members=len(names))  # type: ignore[arg-type]
    return dict.fromkeys(names, run)


def borrows(used: int, own: int) -> TenantQuota:
    return TenantQuota(used_units=used, limit_units=100, nominal_units=own)


# Placing


def test_all_members_start_at_once_each_on_a_node() -> None:
    gang = asks(4, members=2)
    assert placed(decided([node(name="a"), node(name="b")], gang)) == [("a", "b")]


def test_nothing_of_a_gang_starts_while_one_member_has_no_room() -> None:
    gang = asks(4, members=2)
    decisions = decided([node(name="a"), node(runs(1), name="b")], gang)
    assert started(decisions) == []
    assert reasons(decisions) == [Reason("no_room_for_all", {"nodes": 2, "fitting": 1})]


def test_members_share_nodes_and_take_as_few_as_possible() -> None:
    nodes = [node(name="a"), node(runs(3), name="b"), node(name="c", of=8)]
    assert placed(decided(nodes, asks(2, members=4))) == [("c", "c", "c", "c")]
    assert placed(decided(nodes, asks(1, members=4))) == [("a", "a", "a", "a")]
    assert placed(decided(nodes, asks(1, members=13))) == [(*"cccccccc", *"aaaa", "b")]


def test_members_of_a_gang_may_share_a_card_or_have_one_each() -> None:
    whole = Room(200, 64_000, 64_000, 100, (Card(24_000, 100, 10),) * 2)
    need = Room(60, 1000, 1000, 1, (Card(14_000, 60),))
    half = Room(50, 1000, 1000, 1, (Card(12_000, 50),))
    demo = TenantQuota(0, None)
    state = replace(pool([NodeState("a", whole, whole)], asks(0), demo=demo), units_per_gpu=100)
    for asked, members, fits in ((need, 2, True), (need, 3, False), (half, 4, True), (half, 5, False)):
        waiting = (replace(state.waiting[0], need=asked, members=members),)
        assert bool(decide(replace(state, waiting=waiting)).admitted) == fits


def test_each_member_follows_the_volumes() -> None:
    nodes = [node(name="a"), node(name="b"), node(name="c")]
    assert placed(decided(nodes, asks(4, members=2, only=["b", "c"]))) == [("b", "c")]
    assert codes(decided(nodes, asks(4, members=3, only=["b", "c"]))) == ["volume_node_small"]


# Waiting


def test_a_gang_that_waits_keeps_its_nodes_free_from_later_claims() -> None:
    gang, longer, short = asks(4, members=2), asks(1, 3 * HOUR), asks(1, HOUR)
    nodes = [node(runs(4, 2 * HOUR), name="a"), node(name="b")]
    decisions = decided(nodes, gang, longer, short)
    assert started(decisions) == [short.claim]
    assert decisions.admitted[0].must_end_at == NOW + 2 * HOUR
    assert reasons(decisions)[1] == Reason("behind_larger", {"gpus": 8})


def test_a_gang_without_known_ends_ahead_gathers_the_nodes_that_lack_least() -> None:
    gang, small = asks(4, members=2), asks(1)
    nodes = [node(runs(3), name="a"), node(runs(1), name="b"), node(runs(2), name="c")]
    decisions = decided(nodes, gang, small)
    assert [(one.claim, one.node) for one in decisions.admitted] == [(small.claim, "a")]


def test_a_gang_starts_at_the_first_time_at_which_all_fit_for_its_whole_time() -> None:
    nodes = [node(runs(4, HOUR), name="a"), node(runs(4, 3 * HOUR), name="b"), node(name="c")]
    booking = Booked(UUID(int=next(numbers)), SECOND, NOW + 2 * HOUR, NOW + 4 * HOUR, 1, 4)
    short, long = asks(4, HOUR, members=2), asks(4, 2 * HOUR, members=2)
    assert plan(pool(nodes, short, bookings=(booking,)))[short.claim] == NOW + HOUR
    assert plan(pool(nodes, long, bookings=(booking,)))[long.claim] == NOW + 3 * HOUR
    assert plan(pool(nodes, short), ends_of=lambda run: None)[short.claim] is None


def test_two_gangs_that_need_the_whole_pool_start_one_after_the_other() -> None:
    first, second = asks(4, HOUR, members=2), asks(4, HOUR, SECOND, members=2)
    nodes = [node(runs(1, HOUR), name="a"), node(runs(1, 2 * HOUR), name="b")]
    starts = plan(pool(nodes, first, second))
    assert (starts[first.claim], starts[second.claim]) == (NOW + 2 * HOUR, NOW + 3 * HOUR)


def test_a_gang_larger_than_the_pool_or_than_a_limit_holds_back_nobody() -> None:
    nodes, small = [node(name="a"), node(name="b")], asks(1)
    for gang, quota, why in (
        (asks(4, members=3), None, Reason("no_room_for_so_many", {"nodes": 3, "most": 2})),
        (asks(2, members=4), TenantQuota(0, 7), Reason("above_quota", {"gpus": 8, "limit_gpus": 7})),
    ):
        decisions = decided(nodes, gang, small, **({"demo": quota} if quota else {}))
        assert started(decisions) == [small.claim]
        assert reasons(decisions) == [why]


def test_all_members_count_towards_a_limit() -> None:
    gang = asks(2, members=2)
    full = {"gpus": 4, "used_gpus": 3, "limit_gpus": 6}
    assert reasons(decided([node(), node(name="b")], gang, demo=TenantQuota(3, 6))) == [
        Reason("quota_full", full)
    ]
    assert started(decided([node(), node(name="b")], gang, demo=TenantQuota(2, 6))) == [gang.claim]


def test_a_gang_has_a_forecast() -> None:
    gang = asks(4, HOUR, members=2)
    nodes = [node(runs(4, HOUR), name="a"), node(runs(4, HOUR), name="b")]
    found = forecast(pool(nodes, gang), Lengths())
    assert found[gang.claim].earliest > NOW


# Bookings


def test_a_gang_takes_a_place_for_each_member_or_none() -> None:
    booking = Booked(UUID(int=next(numbers)), SECOND, NOW - HOUR, NOW + HOUR, 2, 4)
    nodes = [node(name="a"), node(name="b")]
    gang, single = asks(4, members=2, tenant=SECOND), asks(4, tenant=SECOND)
    decisions = decided(nodes, gang, bookings=(booking,))
    assert [(sorted(one.nodes), one.booking) for one in decisions.admitted] == [(["a", "b"], booking.booking)]
    decisions = decided(nodes, replace(single, place=1), replace(gang, place=2), bookings=(booking,))
    assert started(decisions) == [single.claim]


# Preemption


def test_a_gang_is_preempted_as_a_whole() -> None:
    there = gang_on("a", "b", tenant=SECOND)
    nodes = [node(there["a"], name="a"), node(there["b"], name="b")]
    owner = asks(2)
    decisions = decided(nodes, owner, demo=borrows(0, 4), second=borrows(8, 0))
    assert [(one.run, one.beneficiary, one.code) for one in decisions.reclaims] == [
        (there["a"].claim, owner.claim, OWNER_WAITS)
    ]
    at = NOW + 10 * MINUTE
    other = asks(4, tenant=DEMO)
    walk = Walk(pool(nodes, owner, other, demo=borrows(0, 8), second=borrows(8, 0)))
    assert [walk.reserved[claim.claim].start for claim in (owner, other)] == [at, at]
    assert len(walk.lent.reclaims) == 1


def test_a_gang_is_not_preempted_where_a_single_run_would_do() -> None:
    there = gang_on("a", "b", tenant=SECOND, since=MINUTE)
    single = runs(4, None, SECOND, since=9 * HOUR)
    nodes = [node(there["a"], name="a"), node(there["b"], name="b"), node(single, name="c")]
    decisions = decided(nodes, asks(4), demo=borrows(0, 4), second=borrows(12, 0))
    assert [one.run for one in decisions.reclaims] == [single.claim]


def test_a_gang_that_is_mostly_its_tenants_own_is_not_preempted() -> None:
    there = gang_on("a", "b", tenant=SECOND)
    nodes = [node(there["a"], name="a"), node(there["b"], name="b")]
    assert not decided(nodes, asks(2), demo=borrows(0, 4), second=borrows(8, 8)).reclaims
    assert decided(nodes, asks(2), demo=borrows(0, 4), second=borrows(8, 7)).reclaims


def test_runs_are_preempted_on_as_many_nodes_as_a_gang_needs_and_no_more() -> None:
    ones = [runs(1, None, SECOND) for _ in range(4)]
    fours = [runs(4, None, SECOND, since=(9 - number) * HOUR) for number in range(3)]
    nodes = [node(*ones, name="a"), *(node(four, name=name) for four, name in zip(fours, "bcd", strict=True))]
    gang = asks(4, members=2)
    decisions = decided(nodes, gang, demo=borrows(0, 8), second=borrows(16, 0))
    assert {one.run for one in decisions.reclaims} == {fours[1].claim, fours[2].claim}
    assert codes(decisions) == ["waits_for_reclaim"]
    again = decide(applied(pool(nodes, gang, demo=borrows(0, 8), second=borrows(16, 0)), decisions))
    assert (again.reclaims, again.cancelled) == ((), ())


def test_nobody_is_preempted_for_a_gang_that_would_not_fit_even_so() -> None:
    nodes = [node(runs(4, None, SECOND), name="a"), node(runs(4, None, DEMO), name="b")]
    assert not decided(nodes, asks(4, members=2), demo=borrows(4, 12), second=borrows(4, 0)).reclaims


def test_a_gang_is_preempted_before_a_booking_begins() -> None:
    there = gang_on("a", "b", tenant=SECOND)
    nodes = [node(there["a"], name="a"), node(there["b"], name="b")]
    booking = Booked(UUID(int=next(numbers)), DEMO, NOW + 8 * MINUTE, NOW + HOUR, 2, 4)
    decisions = decide(pool(nodes, bookings=(booking,), demo=borrows(0, 8), second=borrows(8, 0)))
    assert [(one.run, one.code) for one in decisions.reclaims] == [(there["a"].claim, BOOKING_BEGINS)]


def test_a_gang_may_be_extended_until_the_first_of_its_nodes_is_needed() -> None:
    there = gang_on("a", "b", ends=HOUR)
    nodes = [node(there["a"], name="a"), node(there["b"], name="b")]
    booking = Booked(UUID(int=next(numbers)), SECOND, NOW + 3 * HOUR, NOW + 5 * HOUR, 1, 1)
    assert may_last_until(pool(nodes, bookings=(booking,)), there["a"].claim) == NOW + 3 * HOUR
    assert may_last_until(pool(nodes), there["a"].claim) is None


# Random pools with gangs


@of_any(pools(gangs=True), few=30)
def test_a_gang_has_all_of_its_members_or_none_and_no_node_gives_more_than_it_has(state: PoolState) -> None:
    decisions = decide(state)
    claims = {claim.claim: claim for claim in state.waiting}
    left = {node.name: node.free for node in state.nodes}
    for one in decisions.admitted:
        claim = claims[one.claim]
        assert len(one.nodes) == claim.members
        for name in one.nodes:
            assert left[name].holds(claim.need)
            left[name] -= claim.need
    decided_on = [one.claim for one in decisions.admitted] + [one.claim for one in decisions.waits]
    assert Counter(decided_on) == Counter(list(claims))


@of_any(pools(gangs=True, asked=False), few=20)
def test_a_gang_is_preempted_on_all_nodes_or_on_none(state: PoolState) -> None:
    """Assumption of the pass: each preempted claim ends in time on each of its nodes, and no other ends sooner."""
    walk, before = Walk(state), Walk(replace(state, waiting=(), bookings=()))
    told = [one.run for one in walk.lent.reclaims]
    assert len(told) == len(set(told))
    for line, known in zip(walk.nodes.lines, before.nodes.lines, strict=True):
        for run, end, known_end in zip(line.runs, line.ends, known.ends, strict=True):
            assert end <= walk.lent.grace_ends if run.claim in told else end == known_end


@of_any(pools(gangs=True), few=20)
def test_no_claim_starts_on_what_a_gang_ahead_could_have_had(state: PoolState) -> None:
    """The claims that start leave each gang ahead of them its planned start, as if they had not come."""
    decisions, order = decide(state), [claim.claim for claim in Walk(state).order]
    gangs = [claim for claim in state.waiting if claim.members > 1]
    starts = plan(state)
    for gang in gangs:
        behind = order[order.index(gang.claim) + 1 :]
        ahead_only = replace(
            state, waiting=tuple(claim for claim in state.waiting if claim.claim not in behind)
        )
        began = {one.claim for one in decisions.admitted} & set(behind)
        if began and not state.bookings:
            alone = Walk(ahead_only).reserved.get(gang.claim)
            with_all = Walk(state).reserved.get(gang.claim)
            assert (alone is None) == (with_all is None)
            assert alone is None or with_all is None or with_all.start <= alone.start
    assert starts.keys() == {claim.claim for claim in state.waiting}


@of_any(st.lists(st.integers(1, 3), min_size=30, max_size=30), st.integers(2, 3), few=10)
def test_two_gangs_that_need_the_whole_pool_both_finish(sizes: list[int], members: int) -> None:
    """Small claims of another tenant come all the time, and everything ends at last: neither gang waits for ever."""
    whole = Room(4, 99, 99, 99)
    nodes = tuple(NodeState(f"node-{number}", whole, whole) for number in range(members))
    free = dict.fromkeys((DEMO, SECOND), TenantQuota(0, None))
    small = [
        Waiting(UUID(int=100 + at), SECOND, Room(units, 1, 1, 1), 0, at, lasts=timedelta(minutes=20 + at % 7))
        for at, units in enumerate(sizes)
    ]
    gangs = [
        Waiting(UUID(int=number), tenant, Room(4, 1, 1, 1), 0, 5 + number, lasts=HOUR, members=members)
        for number, tenant in ((1, DEMO), (2, SECOND))
    ]
    state = PoolState(1, nodes, (*small[:4], *gangs), free, NOW)
    coming, finished = small[4:], set[UUID]()
    for _step in range(200):
        state = applied(state, decide(state))
        there = [run.claim for one in state.nodes for run in one.runs]
        for gang in gangs:
            assert there.count(gang.claim) in (0, members)
        if not there:
            break
        state = at_next_end(state)
        gone = set(there) - {run.claim for one in state.nodes for run in one.runs}
        finished |= gone & {gang.claim for gang in gangs}
        state = replace(state, waiting=(*state.waiting, *coming[:1]))
        coming = coming[1:]
    assert finished == {gang.claim for gang in gangs}


def counted(state: PoolState, need: Room, members: int, lasts: timedelta | None, at: datetime) -> bool:
    """Return True if so many fit at a time for `lasts`, one by one, by brute force over all moments."""
    lines = Walk(replace(state, waiting=())).nodes.lines
    until = NOW + 900 * HOUR if lasts is None else at + lasts
    fits = 0
    for line in lines:
        moments = [at, *(time for time in line.times if at < time < until)]
        number = members
        for moment in moments:
            room, here = line.room_at(moment), 0
            while here < members and room.holds(need):
                room, here = room - need, here + 1
            number = min(number, here)
        fits += number
    return fits >= members


@of_any(pools(), st.integers(1, 3), st.integers(2, 5), st.none() | st.sampled_from((5, 30, 90)), few=30)
def test_the_first_time_at_which_all_members_fit_is_found(
    state: PoolState, units: int, members: int, minutes: int | None
) -> None:
    need, lasts = Room(units, 2, 2, 1), None if minutes is None else timedelta(minutes=minutes)
    walk = Walk(replace(state, waiting=()))
    spot = walk.gangs.first_fit(need, lasts, members)
    moments = sorted({walk.now, *(time for line in walk.nodes.lines for time in line.times)})
    able = [at for at in moments if counted(state, need, members, lasts, at)]
    if spot is None:
        assert not able
    elif able:
        assert spot.start == able[0]
        assert len(spot.nodes) == members
        for line, here in Counter(spot.nodes).items():
            end = NOW + 900 * HOUR if lasts is None else able[0] + lasts
            assert line.holds_until(need, able[0], here) >= end
    else:
        assert spot.start.year == 9999


def test_a_queue_of_gangs_is_decided_quickly() -> None:
    """A bound on CPU time against growth beyond proportion, far above what it takes (0.2 s)."""
    there = [node(runs(8, (1 + number % 9) * HOUR), name=f"n{number:03}", of=8) for number in range(64)]
    waiting = [asks(8, (1 + number % 5) * HOUR, members=2 + number % 7) for number in range(60)]
    began = process_time()
    assert len(decide(pool(there, *waiting)).waits) == 60
    assert process_time() - began < 5

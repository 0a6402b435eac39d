"""Free slots for bookings, compared with an exhaustive search over whole hours."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.bookings.free_slots import FreeSlots
from quotas.scheduling import Booked, Card, NodeState, PoolState, Room, Run, TenantQuota

many = settings(max_examples=40, deadline=None)
NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
LAST, LONGEST = 12, 4
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


def at(hour: int) -> datetime:
    return NOW + hour * HOUR


def run(units: int, ends: int | None, tenant: uuid.UUID = TWO, age: int = 1, **values: object) -> Run:
    ends_at = None if ends is None else at(ends)
    return Run(uuid.uuid4(), tenant, None, Room(units), NOW - age * HOUR, ends_at, **values)  # type: ignore[arg-type]


def booked(starts: int, ends: int, places: int = 1, units_each: int = 1, tenant: uuid.UUID = ONE) -> Booked:
    return Booked(uuid.uuid4(), tenant, at(starts), at(ends), places, units_each)


def pool(
    *nodes: tuple[int, Sequence[Run]],
    bookings: Iterable[Booked] = (),
    nominal: int = 8,
    books: int | None = None,
) -> PoolState:
    """Nodes (units, runs); both tenants have the same quota. `books`: own GPUs of the first, if different."""
    quota = TenantQuota(0, 12, nominal_units=nominal)
    whose = quota if books is None else replace(quota, nominal_units=books)
    states = (
        NodeState(f"node-{number}", Room(units), Room(units), tuple(runs))
        for number, (units, runs) in enumerate(nodes)
    )
    return PoolState(1, tuple(states), (), {ONE: whose, TWO: quota}, NOW, bookings=tuple(bookings))


def test_a_run_is_in_the_way_until_its_end_and_for_ever_without_one() -> None:
    wanted = booked(1, 3, units_each=4)
    assert FreeSlots(pool((4, [run(1, 5)]))).next_free(wanted, at(LAST)) == at(5)
    assert FreeSlots(pool((4, [run(1, None)]))).next_free(wanted, at(LAST)) is None


def test_a_free_slot_begins_on_a_whole_minute() -> None:
    odd = replace(run(1, 5), ends_at=at(5) + timedelta(seconds=20))
    assert FreeSlots(pool((4, [odd]))).next_free(booked(1, 3, units_each=4), at(LAST)) == at(5) + timedelta(
        minutes=1
    )


def test_borrowed_runs_are_not_in_the_way_and_the_youngest_end_first() -> None:
    own, borrowed = run(2, None, age=9), run(2, None, age=1)
    state = pool((2, [own]), (2, [borrowed]), nominal=2)
    assert FreeSlots(state).is_free(booked(1, 3, units_each=2))
    assert not FreeSlots(state).is_free(booked(1, 3, places=2, units_each=2))
    assert FreeSlots(state).preempted_by(booked(1, 3, units_each=2)) == (borrowed.claim,)


def test_a_borrowed_run_is_left_alone_where_there_is_room_beside_it() -> None:
    state = pool((2, [run(2, None, age=9)]), (4, [run(2, None)]), nominal=2)
    assert FreeSlots(state).preempted_by(booked(1, 3, units_each=2)) == ()


def test_a_run_that_is_own_in_part_is_in_the_way_only_where_an_older_one_is_not() -> None:
    assert FreeSlots(pool((4, [run(3, None)]), nominal=2)).is_free(booked(1, 3, units_each=2))
    assert not FreeSlots(pool((4, [run(3, None)]), nominal=3)).is_free(booked(1, 3, units_each=2))
    both = [run(2, None, age=9), run(2, None, age=1)]
    assert not FreeSlots(pool((4, both), nominal=3)).is_free(booked(1, 3, units_each=4))


def test_a_run_stops_being_borrowed_once_older_ones_of_its_tenant_have_ended() -> None:
    state = pool((4, [run(2, 2, age=9), run(2, None, age=1)]), nominal=2)
    assert FreeSlots(state).is_free(booked(0, 2, units_each=2))
    assert FreeSlots(state).is_free(
        booked(2, 4, units_each=2)
    )  # the older run is over, and the younger no longer borrows
    assert not FreeSlots(state).is_free(booked(2, 4, units_each=4))


def test_a_run_on_own_gpus_stays_in_the_way_after_a_borrowed_one_has_ended() -> None:
    state = pool((4, [run(2, None, age=9), run(2, 2, age=1)]), nominal=2)
    assert FreeSlots(state).is_free(booked(1, 4, units_each=2))
    assert not FreeSlots(state).is_free(booked(1, 4, units_each=4))


def test_a_run_in_a_bookings_place_counts_once() -> None:
    mine = booked(0, 4, places=2, units_each=2)
    inside = run(1, None, tenant=ONE, booking=mine.booking)
    assert FreeSlots(pool((4, [inside]), bookings=[mine])).is_free(booked(0, 4, units_each=1))
    assert not FreeSlots(pool((4, [inside]), bookings=[mine])).is_free(booked(0, 4, units_each=2))


def test_what_a_tenant_has_booked_already_counts_towards_its_quota() -> None:
    state = pool((8, []), bookings=[booked(2, 4, units_each=3)], nominal=4)
    wanted = booked(1, 3, units_each=2)
    assert not FreeSlots(state).is_free(wanted)
    assert FreeSlots(state).is_free(replace(wanted, tenant=TWO))
    assert FreeSlots(state).next_free(wanted, at(LAST)) == at(4)


def test_how_many_fewer_places_would_fit() -> None:
    state = pool((4, [run(1, None)]), (4, [run(2, None)]))
    assert FreeSlots(state).most_places(booked(1, 2, places=6)) == 5
    assert FreeSlots(state).most_places(booked(1, 2, places=6, units_each=2)) == 2
    assert FreeSlots(state).most_places(booked(1, 2, places=2, units_each=4)) == 0


def test_a_booking_is_not_in_its_own_way() -> None:
    mine = booked(1, 3, units_each=4)
    assert FreeSlots(pool((4, []), bookings=[mine])).is_free(replace(mine, ends_at=at(4)))


def test_a_run_of_another_pool_on_the_same_node_is_never_preempted() -> None:
    state = pool((2, [run(2, None, in_pool=False)]), nominal=0, books=2)
    assert FreeSlots(state).next_free(booked(1, 3, units_each=2), at(LAST)) is None


def test_a_claim_of_several_members_is_in_the_way_on_each_of_its_nodes_or_preempted_on_all() -> None:
    gang = run(4, 5, members=2)
    nodes: tuple[tuple[int, Sequence[Run]], ...] = (4, [gang]), (4, [gang]), (4, [])
    assert FreeSlots(pool(*nodes)).next_free(booked(1, 3, 2, 4), at(LAST)) == at(5)
    slots = FreeSlots(pool(*nodes, nominal=4, books=8))
    assert slots.is_free(booked(1, 3, 2, 4))
    assert slots.preempted_by(booked(1, 3, 2, 4)) == (gang.claim,)
    older = run(4, 5, age=9)
    beside = FreeSlots(pool((4, [gang]), (4, [gang]), (4, [older]), nominal=8, books=12))
    assert not beside.is_free(booked(1, 3, 3, 4))
    assert beside.is_free(booked(1, 3, 2, 4))


def test_where_gpus_are_cut_a_run_takes_whole_ones_and_places_share_those_of_their_booking() -> None:
    half = Room(50, cards=(Card(20_000, 50),))
    gpus = Room(0, cards=(Card(40_000, 100),) * 2)
    taken = Run(uuid.uuid4(), TWO, None, half, NOW, None)
    state = replace(pool(), units_per_gpu=100, nodes=(NodeState("node", gpus, gpus, (taken,)),))
    slots = FreeSlots(
        replace(state, tenants=dict.fromkeys((ONE, TWO), TenantQuota(0, 800, nominal_units=800)))
    )
    assert slots.is_free(booked(1, 3, places=4, units_each=25))
    assert not slots.is_free(booked(1, 3, places=5, units_each=25))
    assert slots.is_free(booked(1, 3, units_each=100))
    assert not slots.is_free(booked(1, 3, units_each=200))


# --- Compared with an exhaustive search


def hours(draw: st.DrawFn) -> tuple[int, int]:
    starts = draw(st.integers(0, LAST - LONGEST))
    return starts, draw(st.integers(starts + 1, starts + LONGEST))


@st.composite
def pools(draw: st.DrawFn, *, sizes: st.SearchStrategy[int], borrowing: bool) -> tuple[PoolState, Booked]:
    ends = st.one_of(st.none(), st.integers(1, LAST))
    nodes = []
    for _node in range(draw(st.integers(1, 3))):
        units = draw(st.integers(1, 4))
        runs: list[Run] = []
        for _run in range(draw(st.integers(0, 2))):
            taken = draw(st.integers(1, 2))
            if taken + sum(one.takes.units for one in runs) <= units:
                tenant = draw(st.sampled_from((ONE, TWO)))
                runs.append(run(taken, draw(ends), tenant, age=draw(st.integers(1, 9))))
        nodes.append((units, runs))
    nominal = draw(st.integers(0, 4)) if borrowing else 99
    state = pool(*nodes, nominal=nominal, books=draw(st.integers(1, 12)))
    for _booking in range(draw(st.integers(0, 4))):
        one = asked(draw, sizes)
        if FreeSlots(state).is_free(one):
            state = replace(state, bookings=(*state.bookings, one))
    return state, asked(draw, sizes)


def asked(draw: st.DrawFn, sizes: st.SearchStrategy[int]) -> Booked:
    tenant = draw(st.sampled_from((ONE, TWO)))
    return booked(*hours(draw), draw(st.integers(1, 3)), draw(sizes), tenant)


def room(state: PoolState) -> list[list[int]]:
    """Return the free units by node and hour; runs on borrowed GPUs do not count."""
    runs = [(number, one) for number, node in enumerate(state.nodes) for one in node.runs]
    free = [[node.without_ours.units] * LAST for node in state.nodes]
    for hour in range(LAST):
        there = [(n, one) for n, one in runs if one.ends_at is None or one.ends_at > at(hour)]
        over = {
            tenant: sum(one.takes.units for _n, one in there if one.tenant == tenant)
            - (quota.nominal_units or 0)
            for tenant, quota in state.tenants.items()
        }
        youngest_first = sorted(there, key=lambda pair: (pair[1].admitted_at, pair[1].claim), reverse=True)
        for number, one in youngest_first:
            if over[one.tenant] > 0:
                over[one.tenant] -= one.takes.units
            else:
                free[number][hour] -= one.takes.units
    return free


def fits(state: PoolState, bookings: Sequence[Booked]) -> bool:
    """Return True if all places can be laid out, and no tenant books more than its own GPUs."""
    for hour in range(LAST):
        for tenant, quota in state.tenants.items():
            now = [b for b in bookings if b.tenant == tenant and b.starts_at <= at(hour) < b.ends_at]
            own = quota.nominal_units
            if own is not None and sum(b.places * b.units_each for b in now) > own:
                return False
    return laid_out([b for b in bookings for _place in range(b.places)], room(state))


def laid_out(places: Sequence[Booked], free: list[list[int]]) -> bool:
    if not places:
        return True
    first, *others = places
    when = [hour for hour in range(LAST) if first.starts_at <= at(hour) < first.ends_at]
    for node in free:
        if all(node[hour] >= first.units_each for hour in when):
            for hour in when:
                node[hour] -= first.units_each
            if laid_out(others, free):
                return True
            for hour in when:
                node[hour] += first.units_each
    return False


@many
@given(pools(sizes=st.integers(1, 3), borrowing=True))
def test_whatever_is_taken_can_be_kept(made: tuple[PoolState, Booked]) -> None:
    state, wanted = made
    assert fits(state, state.bookings)
    start = FreeSlots(state).next_free(wanted, at(LAST - LONGEST))
    if start is not None:
        assert start >= wanted.starts_at
        moved = replace(wanted, starts_at=start, ends_at=start + (wanted.ends_at - wanted.starts_at))
        assert fits(state, [*state.bookings, moved])


@many
@given(pools(sizes=st.just(1), borrowing=False) | pools(sizes=st.just(2), borrowing=False))
def test_the_next_free_slot_of_places_of_one_size_is_the_very_first(made: tuple[PoolState, Booked]) -> None:
    state, wanted = made
    length = wanted.ends_at - wanted.starts_at
    first = int((wanted.starts_at - NOW) / HOUR)
    free = (
        at(hour)
        for hour in range(first, LAST - LONGEST + 1)
        if fits(state, [*state.bookings, replace(wanted, starts_at=at(hour), ends_at=at(hour) + length)])
    )
    assert FreeSlots(state).next_free(wanted, at(LAST - LONGEST)) == next(free, None)

"""Forecasts of starts, on plain values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from quotas.scheduling import (
    BACK_OFF_MOST,
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
from quotas.scheduling.forecast import (
    FRONT,
    Confidence,
    Range,
    Stretch,
    confidence,
    enough_draws,
    forecast,
    moved,
)
from quotas.scheduling.lengths import HOUR, Lengths, Past

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEMO, SECOND = UUID(int=1), UUID(int=2)
OPEN = TenantQuota(used_units=0, limit_units=100)
numbers = count(10)
# Runs of this pool last four hours, give or take an hour.
STEADY = Lengths([Past(DEMO, None, hours * HOUR) for hours in (3, 3.2, 3.5, 3.8, 4, 4, 4.2, 4.5, 4.8, 5)] * 6)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def run(gpus: int, *, age: float = 0, ends: float | None = None, tenant: UUID = DEMO, **values: Any) -> Run:
    """Return a run that started `age` minutes ago and ends in `ends` minutes at most."""
    takes = Room(gpus, 1000, 1024, 1)
    ends_at = None if ends is None else NOW + minutes(ends)
    return Run(UUID(int=next(numbers)), tenant, None, takes, NOW - minutes(age), ends_at, **values)


def node(name: str, *runs: Run, of: int = 4) -> NodeState:
    whole = Room(of, 64_000, 262_144, 100)
    free = whole
    for one in runs:
        free = free - one.takes
    return NodeState(name, free, whole, runs)


def asks(gpus: int, *, lasts: float | None = None, tenant: UUID = DEMO, **values: Any) -> Waiting:
    number = next(numbers)
    lasting = None if lasts is None else minutes(lasts)
    need = Room(gpus, 1000, 1024, 1)
    return Waiting(UUID(int=number), tenant, need, priority=0, place=number, lasts=lasting, **values)


def pool(nodes: list[NodeState], *waiting: Waiting, demo: TenantQuota = OPEN, **values: Any) -> PoolState:
    return PoolState(1, tuple(nodes), waiting, {DEMO: demo, SECOND: OPEN}, NOW, **values)


def told(state: PoolState, one: Waiting, **options: Any) -> Range:
    return forecast(state, STEADY, **options)[one.claim]


def early(range_: Range) -> float:
    return (range_.earliest - NOW) / minutes(1)


def late(range_: Range) -> float:
    assert range_.latest is not None
    return (range_.latest - NOW) / minutes(1)


def test_it_starts_when_such_runs_as_the_one_before_it_end() -> None:
    waits = asks(4)
    range_ = told(pool([node("a", run(4))], waits), waits)
    assert 180 <= early(range_) <= 220
    assert 260 <= late(range_) <= 310


def test_the_longer_the_other_has_been_running_the_sooner() -> None:
    waits = asks(4)
    range_ = told(pool([node("a", run(4, age=150))], waits), waits)
    assert early(range_) < 60
    assert late(range_) < 160


def test_no_run_outlasts_its_known_end() -> None:
    waits = asks(4)
    assert late(told(pool([node("a", run(4, ends=20))], waits), waits)) < 35


def test_a_run_that_was_asked_back_ends_by_then() -> None:
    waits = asks(4)
    asked_back = run(4, reclaim_at=NOW + minutes(10))
    assert late(told(pool([node("a", asked_back)], waits), waits)) < 25


def test_the_first_of_many_runs_ends_sooner_than_any_one_of_them() -> None:
    waits = asks(1)
    alone = told(pool([node("a", run(4))], asks(4), waits), waits)
    many = told(pool([node("a", *[run(1) for _ in range(4)])], waits), waits)
    assert late(many) < late(alone)


def test_who_stands_behind_another_waits_for_that_one_too() -> None:
    first, second = asks(4), asks(4)
    state = pool([node("a", run(4))], first, second)
    assert early(told(state, second)) > late(told(state, first))


def test_the_known_lifetime_of_those_before_counts() -> None:
    first, second = asks(4, lasts=30), asks(4)
    state = pool([node("a", run(4, ends=10))], first, second)
    assert early(told(state, second)) >= 30 and late(told(state, second)) <= 55


def test_a_short_one_goes_before_a_large_one_that_it_does_not_delay() -> None:
    large, short, long = asks(4), asks(1, lasts=60), asks(1)
    state = pool([node("a", run(3, ends=240), run(1, ends=5))], large, short, long)
    found = forecast(state, STEADY)
    assert late(found[short.claim]) <= 20
    assert found[long.claim].earliest > NOW + minutes(200)


def test_a_claim_that_the_pass_did_not_start_waits_at_least_for_the_next_end() -> None:
    """A future in which it is short would let it start now, beside what the pass keeps for the large one."""
    large, small = asks(4), asks(1)
    state = pool([node("a", run(3, ends=600))], large, small)
    short = Lengths([Past(DEMO, None, hours * HOUR) for hours in (0.5, 0.6, 0.7, 0.8)] * 12)
    assert early(forecast(state, short)[small.claim]) > 15


def test_who_waits_for_the_tenants_quota_starts_when_the_tenant_ends_something() -> None:
    full = TenantQuota(used_units=2, limit_units=2)
    first, second = asks(2), asks(1)
    state = pool([node("a", run(2, ends=30)), node("b")], first, second, demo=full)
    assert 20 <= early(told(state, first)) <= 30
    assert early(told(state, second)) > 100  # not beside the first, although a node is free


def test_a_limit_of_the_person_holds_back_nobody_else() -> None:
    people = {"alice": PersonUse(gpus=Fraction(2), most_gpus=2)}
    quota = TenantQuota(used_units=2, limit_units=100, people=people)
    hers, his = asks(1, user="alice"), asks(1, user="bob")
    state = pool(
        [node("a", run(2, ends=60)), node("b", run(4, ends=5, tenant=SECOND))], hers, his, demo=quota
    )
    assert late(told(state, his)) <= 20


def test_a_booking_of_others_is_kept_free() -> None:
    booked = Booked(UUID(int=3), SECOND, NOW + minutes(60), NOW + minutes(600), places=1, units_each=4)
    short, long = asks(4, lasts=30), asks(4)
    state = pool([node("a", run(4, ends=5))], short, long, bookings=(booked,))
    found = forecast(state, STEADY)
    assert late(found[short.claim]) <= 20
    assert found[long.claim].earliest >= NOW + minutes(550)


def test_back_off_is_waited_for() -> None:
    waits, at_once = asks(1, not_before=NOW + BACK_OFF_MOST), asks(1)
    stretch = Stretch(late=3)
    assert late(told(pool([node("a")], at_once), at_once, stretch=stretch)) == 30
    assert late(told(pool([node("a")], waits), waits, stretch=stretch)) == 60


def test_a_spent_budget_has_a_date_and_no_end() -> None:
    spent = TenantQuota(0, 100, blocked=Reason("budget_spent", {"from": "2026-02-01"}))
    waits = asks(1)
    range_ = told(pool([node("a")], waits, demo=spent), waits)
    assert range_ == Range(datetime(2026, 2, 1, tzinfo=UTC), None)
    assert confidence(range_, NOW) == Confidence.UNKNOWN


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(lambda waits: pool([node("a")], waits, is_open=False), id="the pool is out of use"),
        pytest.param(lambda waits: pool([], waits), id="no node is ready"),
        pytest.param(lambda waits: pool([node("a", of=2)], waits), id="no node is that large"),
        pytest.param(
            lambda waits: pool([node("a")], waits, demo=TenantQuota(0, limit_units=2)), id="above the quota"
        ),
    ],
)
def test_where_no_estimate_is_honest_there_is_none(state: Any) -> None:
    waits = asks(4)
    assert forecast(state(waits), STEADY) == {}


def test_the_same_facts_give_the_same_forecast() -> None:
    waits = [asks(1) for _ in range(5)]
    state = pool([node("a", run(2), run(2, age=60))], *waits)
    assert forecast(state, STEADY) == forecast(state, STEADY)


def test_a_limit_holds_back_nobody_who_asks_for_nothing_of_it() -> None:
    """A job does not count towards the limit of workspaces."""
    full = replace(OPEN, used=Limits(0, 0, 3), limits=Limits(workspaces=2))
    job = asks(4, is_workspace=False)
    assert late(told(pool([node("a", run(4, ends=5))], job, demo=full), job)) <= 20


def test_any_number_of_people_may_be_at_their_limit() -> None:
    everybody = {UUID(int=number): PersonUse(gpus=Fraction(4), most_gpus=4) for number in range(1100)}
    of_them = [asks(1, user=user) for user in everybody]
    last = asks(1)
    state = pool([node("a", run(4, ends=5))], *of_them, last, demo=replace(OPEN, people=everybody))
    assert late(told(state, last, draws=1)) <= 20


def test_nobody_is_told_that_the_past_is_when_it_starts() -> None:
    waits = asks(4)
    range_ = told(pool([node("a", run(4, ends=-60))], waits), waits)
    assert range_.earliest >= NOW and late(range_) <= 20


# --- Forecasts and actual starts

TOLD = Range(NOW + minutes(60), NOW + minutes(120))


def test_a_start_outside_the_range_widens_those_that_follow_to_that_side() -> None:
    before = Stretch()
    after = before.learn(TOLD, NOW + minutes(150))
    assert after.late > before.late and after.early < before.early


def test_in_the_long_run_at_most_one_of_ten_starts_falls_outside_on_either_side() -> None:
    """The stretch alone corrects: these simulations know nothing of delays."""
    stretch, outside = Stretch(), 0
    for number in range(2000):
        lateness = (number * 37 % 100) / 100  # evenly from 0 to 1
        range_ = Range(NOW, NOW + minutes(20 * stretch.late))
        started_at = NOW + minutes(100 * lateness)
        outside += range_.latest is not None and started_at > range_.latest
        stretch = stretch.learn(range_, started_at)
    assert 0.06 < outside / 2000 <= 0.1


@pytest.mark.parametrize(
    ("earliest", "latest", "is_other"),
    [
        pytest.param(60, 120, False, id="the same"),
        pytest.param(31, 149, False, id="both sides by less than a quarter of the two hours left"),
        pytest.param(29, 120, True, id="earlier by more than a quarter"),
        pytest.param(60, 151, True, id="later by more than a quarter"),
    ],
)
def test_a_forecast_is_replaced_when_a_side_moves_by_a_quarter(
    earliest: float, latest: float, is_other: bool
) -> None:
    assert moved(TOLD, Range(NOW + minutes(earliest), NOW + minutes(latest)), NOW) == is_other


def test_the_nearer_the_start_the_less_it_takes_to_replace_a_forecast() -> None:
    ten_later = Range(TOLD.earliest + minutes(10), NOW + minutes(130))
    assert not moved(TOLD, ten_later, NOW + minutes(60))
    assert moved(TOLD, ten_later, NOW + minutes(90))
    assert not moved(TOLD, Range(TOLD.earliest, NOW + minutes(124)), NOW + minutes(119))


def test_a_forecast_that_begins_ends_or_is_over_is_replaced() -> None:
    assert moved(TOLD, None, NOW) and moved(None, TOLD, NOW) and not moved(None, None, NOW)
    assert moved(TOLD, TOLD, NOW + minutes(121))
    a_day = Range(NOW + minutes(1440), None)
    assert moved(TOLD, a_day, NOW) and not moved(a_day, a_day, NOW)


def test_confidence_depends_on_how_soon_it_is_and_how_wide() -> None:
    assert confidence(Range(NOW, NOW + minutes(25)), NOW) == Confidence.LIKELY
    assert confidence(Range(NOW + minutes(90), NOW + minutes(120)), NOW) == Confidence.LIKELY
    assert confidence(Range(NOW + minutes(300), NOW + minutes(330)), NOW) == Confidence.ROUGH
    assert confidence(Range(NOW + minutes(10), NOW + minutes(370)), NOW) == Confidence.ROUGH
    assert confidence(Range(NOW + minutes(10), NOW + minutes(371)), NOW) == Confidence.UNKNOWN
    assert confidence(Range(NOW - minutes(100), NOW + minutes(300)), NOW) == Confidence.ROUGH
    assert confidence(None, NOW) == Confidence.UNKNOWN


def test_no_range_is_made_far_back_in_a_long_queue() -> None:
    waiting = [asks(4) for _ in range(FRONT + 10)]
    unlimited = TenantQuota(used_units=4, limit_units=None)
    found = forecast(pool([node("a", run(4))], *waiting, demo=unlimited), STEADY, draws=1)
    assert list(found) == [claim.claim for claim in waiting[:FRONT]]


@pytest.mark.parametrize(("waiting", "draws"), [(1, 8), (200, 8), (201, 4), (1000, 4)])
def test_a_long_queue_is_planned_fewer_times(waiting: int, draws: int) -> None:
    assert enough_draws(pool([], *[asks(1) for _ in range(waiting)])) == draws

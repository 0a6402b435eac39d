"""Forecasts of starts, on plain values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest

from quotas.scheduling import (
    BACK_OFF_MOST,
    Booked,
    Limits,
    PersonUse,
    PoolState,
    Reason,
    Run,
    TenantQuota,
    Waiting,
    decide,
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
from tests.quotas.scheduling.values import DEMO, NOW, OPEN, SECOND, asks, node, pool, runs

# Runs of this pool last four hours, give or take an hour.
STEADY = Lengths([Past(DEMO, None, hours * HOUR) for hours in (3, 3.2, 3.5, 3.8, 4, 4, 4.2, 4.5, 4.8, 5)] * 6)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def run(gpus: int, *, age: float = 0, ends: float | None = None, **values: Any) -> Run:
    """Return a run that started `age` minutes ago and ends in `ends` minutes at most."""
    return runs(gpus, None if ends is None else minutes(ends), since=minutes(age), **values)


def forecast_of(state: PoolState, one: Waiting, **options: Any) -> Range:
    return forecast(state, STEADY, **options)[one.claim]


def early(expected: Range) -> float:
    return (expected.earliest - NOW) / minutes(1)


def late(expected: Range) -> float:
    assert expected.latest is not None
    return (expected.latest - NOW) / minutes(1)


def test_a_start_is_forecast_by_the_lengths_of_similar_runs() -> None:
    waits = asks(4)
    expected = forecast_of(pool([node(run(4))], waits), waits)
    assert 180 <= early(expected) <= 220
    assert 260 <= late(expected) <= 310


def test_an_older_run_is_expected_to_end_sooner() -> None:
    waits = asks(4)
    expected = forecast_of(pool([node(run(4, age=150))], waits), waits)
    assert early(expected) < 60
    assert late(expected) < 160


def test_a_run_that_reports_its_progress_is_forecast_by_that_and_promised_nothing() -> None:
    waits, short = asks(4), asks(4, lasts=minutes(30))
    told = run(4, expected_end=NOW + minutes(60))
    expected = forecast_of(pool([node(told)], waits), waits)
    assert 40 <= early(expected) <= 60
    assert 60 <= late(expected) <= 100
    bounded = run(4, ends=20, expected_end=NOW + minutes(60))
    assert late(forecast_of(pool([node(bounded)], waits), waits)) <= 35
    late_one = run(4, expected_end=NOW - minutes(1))
    assert forecast_of(pool([node(late_one)], waits), waits) == forecast_of(
        pool([node(run(4))], waits), waits
    )
    # What is admitted does not rest on it: decisions are the same with and without.
    with_it, without = ([one] for one in (told, replace(told, expected_end=None)))
    booked = [Booked(SECOND, SECOND, NOW + minutes(70), NOW + minutes(100), 1, 4)]
    states = [
        replace(pool([node(*runs_of)], waits, short), bookings=tuple(booked))
        for runs_of in (with_it, without)
    ]
    assert decide(states[0]) == decide(states[1])


@pytest.mark.parametrize(
    ("before", "most"),
    [
        pytest.param(run(4, ends=20), 35, id="its lifetime"),
        pytest.param(run(4, reclaim_at=NOW + minutes(10)), 25, id="its preemption"),
        pytest.param(run(4, ends=-60), 20, id="overdue"),
    ],
)
def test_no_run_outlasts_its_known_end(before: Run, most: float) -> None:
    waits = asks(4)
    expected = forecast_of(pool([node(before)], waits), waits)
    assert expected.earliest >= NOW and late(expected) <= most


def test_the_first_end_of_many_runs_comes_sooner_than_that_of_one() -> None:
    waits = asks(1)
    alone = forecast_of(pool([node(run(4))], asks(4), waits), waits)
    many = forecast_of(pool([node(*[run(1) for _ in range(4)])], waits), waits)
    assert late(many) < late(alone)


def test_a_request_waits_for_those_ahead_of_it() -> None:
    first, second = asks(4), asks(4)
    state = pool([node(run(4))], first, second)
    assert early(forecast_of(state, second)) > late(forecast_of(state, first))


def test_lifetimes_of_requests_ahead_count() -> None:
    first, second = asks(4, lasts=minutes(30)), asks(4)
    state = pool([node(run(4, ends=10))], first, second)
    assert early(forecast_of(state, second)) >= 30 and late(forecast_of(state, second)) <= 55


def test_a_short_request_passes_a_large_one_that_it_does_not_delay() -> None:
    large, short, long = asks(4), asks(1, lasts=minutes(60)), asks(1)
    state = pool([node(run(3, ends=240), run(1, ends=5))], large, short, long)
    found = forecast(state, STEADY)
    assert late(found[short.claim]) <= 20
    assert found[long.claim].earliest > NOW + minutes(200)


def test_a_claim_that_the_pass_did_not_start_waits_at_least_for_the_next_end() -> None:
    """A future in which it is short would let it start now, beside what the pass keeps for the large one."""
    large, small = asks(4), asks(1)
    state = pool([node(run(3, ends=600))], large, small)
    short = Lengths([Past(DEMO, None, hours * HOUR) for hours in (0.5, 0.6, 0.7, 0.8)] * 12)
    assert early(forecast(state, short)[small.claim]) > 15


def test_a_request_at_the_quota_starts_when_a_run_of_the_tenant_ends() -> None:
    full = TenantQuota(used_units=2, limit_units=2)
    first, second = asks(2), asks(1)
    state = pool([node(run(2, ends=30)), node(name="b")], first, second, demo=full)
    assert 20 <= early(forecast_of(state, first)) <= 30
    assert early(forecast_of(state, second)) > 100  # not beside the first, although a node is free


def test_a_limit_per_person_delays_no_other_person() -> None:
    people = {"alice": PersonUse(gpus=Fraction(2), most_gpus=2)}
    quota = TenantQuota(used_units=2, limit_units=100, people=people)
    hers, his = asks(1, user="alice"), asks(1, user="bob")
    state = pool(
        [node(run(2, ends=60)), node(run(4, ends=5, tenant=SECOND), name="b")], hers, his, demo=quota
    )
    assert late(forecast_of(state, his)) <= 20


def test_a_booking_of_others_is_kept_free() -> None:
    booked = Booked(UUID(int=3), SECOND, NOW + minutes(60), NOW + minutes(600), places=1, units_each=4)
    short, long = asks(4, lasts=minutes(30)), asks(4)
    state = pool([node(run(4, ends=5))], short, long, bookings=(booked,))
    found = forecast(state, STEADY)
    assert late(found[short.claim]) <= 20
    assert found[long.claim].earliest >= NOW + minutes(550)


def test_back_off_is_waited_for() -> None:
    waits, at_once = asks(1, not_before=NOW + BACK_OFF_MOST), asks(1)
    stretch = Stretch(late=3)
    assert late(forecast_of(pool([node()], at_once), at_once, stretch=stretch)) == 30
    assert late(forecast_of(pool([node()], waits), waits, stretch=stretch)) == 60


def test_a_spent_budget_has_a_date_and_no_end() -> None:
    spent = TenantQuota(0, 100, blocked=Reason("budget_spent", {"from": "2026-02-01"}))
    waits = asks(1)
    expected = forecast_of(pool([node()], waits, demo=spent), waits)
    assert expected == Range(datetime(2026, 2, 1, tzinfo=UTC), None)
    assert confidence(expected, NOW) == Confidence.UNKNOWN


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(lambda waits: pool([node()], waits, is_open=False), id="the pool is out of use"),
        pytest.param(lambda waits: pool([], waits), id="no node is ready"),
        pytest.param(lambda waits: pool([node(of=2)], waits), id="no node is that large"),
        pytest.param(
            lambda waits: pool([node()], waits, demo=TenantQuota(0, limit_units=2)), id="above the quota"
        ),
    ],
)
def test_where_no_estimate_is_honest_there_is_none(state: Any) -> None:
    waits = asks(4)
    assert forecast(state(waits), STEADY) == {}


def test_the_same_facts_give_the_same_forecast() -> None:
    waits = [asks(1) for _ in range(5)]
    state = pool([node(run(2), run(2, age=60))], *waits)
    assert forecast(state, STEADY) == forecast(state, STEADY)


def test_a_limit_does_not_delay_requests_that_use_none_of_it() -> None:
    """A job does not count towards the limit of workspaces."""
    full = replace(OPEN, used=Limits(0, 0, 3), limits=Limits(workspaces=2))
    job = asks(4, is_workspace=False)
    assert late(forecast_of(pool([node(run(4, ends=5))], job, demo=full), job)) <= 20


def test_any_number_of_people_may_be_at_their_limit() -> None:
    everybody = {UUID(int=number): PersonUse(gpus=Fraction(4), most_gpus=4) for number in range(1100)}
    of_them = [asks(1, user=user) for user in everybody]
    last = asks(1)
    state = pool([node(run(4, ends=5))], *of_them, last, demo=replace(OPEN, people=everybody))
    assert late(forecast_of(state, last, draws=1)) <= 20


# --- Forecasts and actual starts

SHOWN = Range(NOW + minutes(60), NOW + minutes(120))


def test_a_start_outside_its_range_stretches_later_ranges_to_that_side() -> None:
    before = Stretch()
    after = before.learn(SHOWN, NOW + minutes(150))
    assert after.late > before.late and after.early < before.early


def test_in_the_long_run_at_most_one_of_ten_starts_falls_outside_on_either_side() -> None:
    """The stretch alone corrects: these simulations know nothing of delays."""
    stretch, outside = Stretch(), 0
    for number in range(2000):
        lateness = (number * 37 % 100) / 100  # evenly from 0 to 1
        expected = Range(NOW, NOW + minutes(20 * stretch.late))
        started_at = NOW + minutes(100 * lateness)
        outside += expected.latest is not None and started_at > expected.latest
        stretch = stretch.learn(expected, started_at)
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
    assert moved(SHOWN, Range(NOW + minutes(earliest), NOW + minutes(latest)), NOW) == is_other


def test_a_nearer_start_is_replaced_after_a_smaller_move() -> None:
    ten_later = Range(SHOWN.earliest + minutes(10), NOW + minutes(130))
    assert not moved(SHOWN, ten_later, NOW + minutes(60))
    assert moved(SHOWN, ten_later, NOW + minutes(90))
    assert not moved(SHOWN, Range(SHOWN.earliest, NOW + minutes(124)), NOW + minutes(119))


def test_a_forecast_that_begins_ends_or_is_over_is_replaced() -> None:
    assert moved(SHOWN, None, NOW) and moved(None, SHOWN, NOW) and not moved(None, None, NOW)
    assert moved(SHOWN, SHOWN, NOW + minutes(121))
    a_day = Range(NOW + minutes(1440), None)
    assert moved(SHOWN, a_day, NOW) and not moved(a_day, a_day, NOW)


def test_confidence_depends_on_how_soon_it_is_and_how_wide() -> None:
    assert confidence(Range(NOW, NOW + minutes(25)), NOW) == Confidence.LIKELY
    assert confidence(Range(NOW + minutes(90), NOW + minutes(120)), NOW) == Confidence.LIKELY
    assert confidence(Range(NOW + minutes(300), NOW + minutes(330)), NOW) == Confidence.ROUGH
    assert confidence(Range(NOW + minutes(10), NOW + minutes(370)), NOW) == Confidence.ROUGH
    assert confidence(Range(NOW + minutes(10), NOW + minutes(371)), NOW) == Confidence.UNKNOWN
    assert confidence(Range(NOW - minutes(100), NOW + minutes(300)), NOW) == Confidence.ROUGH
    assert confidence(None, NOW) == Confidence.UNKNOWN


def test_no_expectedis_made_far_back_in_a_long_queue() -> None:
    waiting = [asks(4) for _ in range(FRONT + 10)]
    unlimited = TenantQuota(used_units=4, limit_units=None)
    found = forecast(pool([node(run(4))], *waiting, demo=unlimited), STEADY, draws=1)
    assert list(found) == [claim.claim for claim in waiting[:FRONT]]


@pytest.mark.parametrize(("waiting", "draws"), [(1, 8), (200, 8), (201, 4), (1000, 4)])
def test_a_long_queue_is_planned_fewer_times(waiting: int, draws: int) -> None:
    assert enough_draws(pool([], *[asks(1) for _ in range(waiting)])) == draws

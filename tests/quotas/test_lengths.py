"""Lengths of runs, learned from past runs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from quotas.scheduling.lengths import ENOUGH, HOUR, Curve, Lengths, Past

DEMO, SECOND = UUID(int=1), UUID(int=2)
ALICE, BOB = "alice", "bob"


def past(*hours: float, tenant: UUID = DEMO, user: str = ALICE, **values: Any) -> list[Past]:
    return [Past(tenant, user, one * HOUR, **values) for one in hours]


def test_half_of_the_runs_have_ended_by_their_median() -> None:
    assert Curve(past(1, 2, 3, 4, 5)).left(0, [0.5]) == [3 * HOUR]


def test_an_older_run_is_compared_with_longer_runs() -> None:
    curve = Curve(past(1, 2, 3, 10, 20))
    assert curve.left(4 * HOUR, [0.4]) == [6 * HOUR]  # ten hours in all: the shorter of the two beyond four


def test_the_longest_run_is_expected_to_last_up_to_twice_as_long() -> None:
    curve = Curve(past(1, 2))
    assert curve.left(10 * HOUR, [0.5]) == [5 * HOUR]
    assert curve.left(10 * HOUR, [0.1]) < curve.left(10 * HOUR, [0.9]) <= [10 * HOUR]


def test_a_run_that_was_cut_off_or_continues_counts_as_longer() -> None:
    ended = Curve(past(1, 2, 3, 1, 1, 1, 1, 1, 1))
    cut_off = Curve([*past(1, 2, 3), *past(1, 1, 1, asked_seconds=HOUR), *past(1, 1, 1, has_ended=False)])
    assert cut_off.left(0, [0.5]) > ended.left(0, [0.5])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_larger_share_ends_later(share: float) -> None:
    curve = Curve(past(*range(1, 30)))
    assert curve.left(0, [share]) <= curve.left(0, [share + 0.05])
    assert curve.left(5 * HOUR, [share]) >= [0]


def test_a_person_with_enough_runs_is_estimated_by_them() -> None:
    known = Lengths([*past(*[1] * ENOUGH), *past(*[9] * 100, user=BOB)])
    assert known.curve(DEMO, ALICE, None).left(0, [0.5]) == [HOUR]
    assert known.curve(DEMO, BOB, None).left(0, [0.5]) == [9 * HOUR]


def test_a_new_person_is_estimated_by_tenant_then_by_pool() -> None:
    known = Lengths([*past(*[2] * ENOUGH), *past(*[9] * 100, tenant=SECOND)])
    assert known.curve(DEMO, "carol", None).left(0, [0.5]) == [2 * HOUR]
    assert known.curve(UUID(int=3), "dave", None).left(0, [0.5]) == [9 * HOUR]


def test_runs_that_ask_for_about_as_long_are_alike() -> None:
    short = past(*[0.5] * ENOUGH, asked_seconds=HOUR)
    known = Lengths([*short, *past(*[20] * ENOUGH, asked_seconds=24 * HOUR)])
    assert known.curve(DEMO, ALICE, HOUR).left(0, [0.5]) == [0.5 * HOUR]
    assert known.curve(DEMO, ALICE, 24 * HOUR).left(0, [0.5]) == [20 * HOUR]


def test_before_anything_is_known_the_range_is_wide() -> None:
    curve = Lengths().curve(DEMO, ALICE, None)
    early, late = curve.left(0, [0.1, 0.9])
    assert HOUR / 4 < early < HOUR
    assert 8 * HOUR < late < 48 * HOUR

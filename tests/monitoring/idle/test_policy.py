"""Which policy holds, and when a run that is idle has been so for too long."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.idle.policy import Night, Rules, most_exact, rules_of
from monitoring.models import IdlePolicy

VISION, OTHER, A100 = UUID(int=1), UUID(int=2), UUID(int=3)
DAY = datetime(2026, 3, 28, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
clocks = st.times().map(lambda at: at.replace(second=0, microsecond=0))
spans = st.integers(1, 2000)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC))


def one(tenant: UUID | None = None, pool: UUID | None = None, **values: object) -> IdlePolicy:
    return IdlePolicy(tenant_id=tenant, pool_id=pool, **values)


def test_the_most_exact_policy_holds() -> None:
    every, of_pool, of_tenant, both = one(), one(pool=A100), one(VISION), one(VISION, A100)
    assert most_exact([every, of_pool, of_tenant, both], VISION, A100) is both
    assert most_exact([every, of_pool, of_tenant], VISION, A100) is of_tenant
    assert most_exact([every, of_pool, of_tenant], OTHER, A100) is of_pool
    assert most_exact([every, of_pool, of_tenant], OTHER, uuid4()) is every
    assert most_exact([of_pool, of_tenant], OTHER, uuid4()) is None


def test_no_policy_stops_a_run_without_gpus_but_its_person_may() -> None:
    policy = one(minutes=60)
    assert not rules_of(policy, has_gpus=False, own_minutes=None).stops
    assert rules_of(policy, has_gpus=False, own_minutes=90).allowed(DAY) == 90 * MINUTE
    assert rules_of(policy, has_gpus=True, own_minutes=90).allowed(DAY) == 60 * MINUTE
    assert rules_of(policy, has_gpus=True, own_minutes=20).allowed(DAY) == 20 * MINUTE
    assert not rules_of(one(is_active=False), has_gpus=True, own_minutes=None).stops
    assert not rules_of(None, has_gpus=True, own_minutes=None).stops


def test_waiting_people_make_it_shorter_and_the_night_longer() -> None:
    night = Night(time(20), time(6), "UTC")
    rules = Rules(minutes=60, night_minutes=600, night=night, waiting_minutes=15)
    assert rules.allowed(DAY) == 60 * MINUTE
    assert rules.allowed(DAY + timedelta(hours=10)) == 600 * MINUTE
    assert rules.allowed(DAY + timedelta(hours=10), others_wait=True) == 15 * MINUTE


def test_idle_since_the_evening_it_may_stay_until_the_morning() -> None:
    rules = Rules(minutes=60, night_minutes=24 * 60, night=Night(time(20), time(6), "Europe/Berlin"))
    evening = datetime(2026, 3, 28, 18, 30, tzinfo=UTC)  # 19:30 in Berlin; clocks go forward that night
    assert rules.ends(evening) == datetime(2026, 3, 29, 4, tzinfo=UTC)  # 6:00 in Berlin
    assert rules.ends(evening - timedelta(hours=2)) == evening - timedelta(hours=1)


def test_a_warning_takes_no_more_than_half_of_the_time() -> None:
    assert Rules(minutes=60, warning_minutes=10).warning(DAY) == 10 * MINUTE
    assert Rules(minutes=8, warning_minutes=10).warning(DAY) == 4 * MINUTE


@given(since=moments, minutes=spans, night_minutes=spans, begin=clocks, end=clocks)
def test_it_ends_at_the_first_minute_at_which_it_was_idle_for_as_long_as_it_may_be(
    since: datetime, minutes: int, night_minutes: int, begin: time, end: time
) -> None:
    since = since.replace(second=0, microsecond=0)
    rules = Rules(minutes=minutes, night_minutes=night_minutes, night=Night(begin, end, "Asia/Seoul"))
    expected = next(at for n in range(5000) if (at := since + n * MINUTE) - since >= rules.allowed(at))
    assert rules.ends(since) == expected


@pytest.mark.parametrize("at", [DAY, DAY + timedelta(hours=13)])
def test_a_night_of_no_length_is_no_night(at: datetime) -> None:
    assert not Night(time(8), time(8), "UTC").holds(at)

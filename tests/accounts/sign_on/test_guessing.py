"""The limits on guessing, as pure decisions: none can be outrun, and none shuts anybody out for long."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.credentials.guessing import (
    ACCOUNT,
    ADDRESS,
    CODES,
    DIRECTORY,
    PAIR,
    WINDOW,
    Limit,
    at_code,
    at_directory,
    at_password,
    at_password_of_signed_in,
    free_at,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = [PAIR, CODES, DIRECTORY, ACCOUNT, ADDRESS]
# Most attempts in any window of fifteen minutes, by somebody who never pauses longer than they must.
MOST = {PAIR: 5, CODES: 10, DIRECTORY: 4, ACCOUNT: 45, ADDRESS: 145}
gaps = st.lists(st.floats(0, 400), max_size=400)
names = st.text(st.characters(exclude_characters="\0"), max_size=20)
addresses = st.ip_addresses().map(str)


def within_window(admitted: list[datetime], now: datetime) -> list[datetime]:
    return admitted[bisect_left(admitted, now - WINDOW) :][::-1]


def allowed(limit: Limit, admitted: list[datetime], now: datetime) -> bool:
    moment = free_at(limit, within_window(admitted, now)[: limit.most])
    return moment is None or moment <= now


def most_in_a_window(admitted: list[datetime]) -> int:
    ends = [bisect_right(admitted, at + WINDOW - timedelta(microseconds=1)) for at in admitted]
    return max((end - begin for begin, end in enumerate(ends)), default=0)


@pytest.mark.parametrize("limit", LIMITS)
@given(gaps=gaps)
def test_no_timing_gets_more_attempts_than_the_limit(limit: Limit, gaps: list[float]) -> None:
    now, admitted = BEGIN, list[datetime]()
    for gap in gaps:
        now += timedelta(seconds=gap)
        if allowed(limit, admitted, now):
            admitted.append(now)
    assert most_in_a_window(admitted) <= MOST[limit]


@pytest.mark.parametrize("limit", LIMITS)
def test_who_never_rests_gets_few_attempts_and_never_none(limit: Limit) -> None:
    admitted = list[datetime]()
    for second in range(3600):
        now = BEGIN + timedelta(seconds=second)
        if allowed(limit, admitted, now):
            admitted.append(now)
    assert limit.free <= most_in_a_window(admitted) <= MOST[limit]
    waits = [later - earlier for earlier, later in itertools.pairwise(admitted)]
    assert max(waits) <= limit.longest_pause + timedelta(seconds=1)


@pytest.mark.parametrize("limit", LIMITS)
@given(ages=st.lists(st.floats(0, WINDOW.total_seconds()), min_size=1, max_size=300))
def test_a_pause_begins_at_the_last_failure_and_has_an_end(limit: Limit, ages: list[float]) -> None:
    failures = [BEGIN - timedelta(seconds=age) for age in sorted(ages)]
    moment = free_at(limit, failures)
    assert (moment is None) == (len(failures) < limit.free)
    if moment is not None:
        assert moment <= failures[0] + limit.longest_pause
    assert free_at(limit, failures[: limit.most]) == moment  # no more rows are needed


@given(name=names, typed=names, home=addresses, elsewhere=addresses)
def test_strangers_cannot_reach_what_known_browsers_and_signed_in_people_are_counted_under(
    name: str, typed: str, home: str, elsewhere: str
) -> None:
    someone = uuid4()
    own = [
        at_password(name, home, "device-1"),
        at_password(name, home, "device-2"),
        at_password_of_signed_in(someone, home),
        at_code(someone, home),
    ]
    assert len({attempt.name for attempt in own}) == 4
    strangers = {
        at_password(text, address, None).name for text in (name, typed) for address in (home, elsewhere)
    } | {at_directory(text).name for text in (name, typed)}
    assert strangers.isdisjoint(attempt.name for attempt in own)
    assert not any(attempt.by_address for attempt in own)


@given(name=names, home=st.none() | addresses)
def test_what_is_counted_holds_no_name_and_has_a_tight_limit_by_address(name: str, home: str | None) -> None:
    attempt = at_password(name, home, None)
    assert len(attempt.name) == 64
    assert attempt.by_pair == PAIR
    assert (attempt.by_address is None) == (home is None)
    assert attempt.name == at_password(name.upper().lower(), home, None).name or not name.isascii()

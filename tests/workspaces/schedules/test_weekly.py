"""Weekly times in a person's time zone, held against zoneinfo, and what a schedule decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workspaces.runs.weekly import (
    PATIENCE,
    WARNING,
    Act,
    Known,
    Turn,
    Week,
    begun,
    coming,
    decide,
    instant,
    look_at,
    turns,
)

BERLIN = ZoneInfo("Europe/Berlin")
# Zones whose clocks jump by an hour, half an hour, at midnight, and by a whole day (Apia, 2011).
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Seoul",
    "Pacific/Apia",
]
WORK = Week(start=time(9), stop=time(18), days=frozenset({1, 2, 3, 4, 5}), zone=BERLIN)
MONDAY = date(2026, 3, 23)  # of the week that ends with the change to summer time
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
times = st.times().map(lambda at: at.replace(second=0, microsecond=0, fold=0))


def at(day: date, hour: int, minute: int = 0) -> datetime:
    return datetime.combine(day, time(hour, minute), BERLIN).astimezone(UTC)


@settings(max_examples=150, deadline=None)
@given(
    st.dates(date(2011, 12, 20), date(2012, 1, 5)) | st.dates(date(2024, 1, 1), date(2027, 12, 31)),
    times,
    st.sampled_from(ZONES),
)
def test_a_time_is_the_first_instant_at_which_the_clock_shows_it_or_a_later_one(
    day: date, clock: time, name: str
) -> None:
    zone, wall = ZoneInfo(name), datetime.combine(day, clock)
    found = instant(day, clock, zone)
    shown, before = (moment.astimezone(zone).replace(tzinfo=None) for moment in (found, found - SECOND))
    assert before < wall <= shown


@pytest.mark.parametrize(
    ("day", "clock", "utc"),
    [
        (date(2026, 3, 29), time(2, 30), "2026-03-29T01:00"),  # skipped: at the jump
        (date(2026, 10, 25), time(2, 30), "2026-10-25T00:30"),  # shown twice: the first
        (date(2026, 3, 30), time(9), "2026-03-30T07:00"),
        (date(2026, 3, 27), time(9), "2026-03-27T08:00"),
    ],
)
def test_skipped_and_doubled_times_have_their_meaning(day: date, clock: time, utc: str) -> None:
    assert instant(day, clock, BERLIN) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@settings(max_examples=80, deadline=None)
@given(
    times,
    times,
    st.sets(st.integers(1, 7), min_size=1),
    st.sampled_from(ZONES),
    st.dates(date(2025, 1, 1), date(2026, 12, 1)),
)
def test_a_run_through_the_weeks_stops_what_it_started_each_time_once(
    start: time, stop: time, days: set[int], name: str, first: date
) -> None:
    """A workspace that nobody touches is started and stopped in turn, each stop announced in time."""
    week = Week(start=start, stop=stop, days=frozenset(days), zone=ZoneInfo(name))
    now = datetime.combine(first, time(), UTC)
    known, did = Known(done_until=now), list[tuple[Act, datetime]]()
    for _look in range(40):
        due = look_at(week, known)
        if due is None or due > now + 400 * DAY:
            break
        now = max(now, due)
        act, known = decide(week, replace(known, is_waiting=False), now)
        if act in (Act.START, Act.STOP):
            known = replace(known, runs=act == Act.START)
        if act != Act.NOTHING:
            did.append((act, now))
    acts = [act for act, _at in did]
    usual = {Act.START: Act.WARN, Act.WARN: Act.STOP, Act.STOP: Act.START}
    assert acts[:1] in ([], [Act.START])
    for (before, began), (act, moment) in pairwise(did):
        starts = [turn for turn in turns(week, began, moment) if turn.act == Act.START]
        assert act == usual[before] or (before == act == Act.WARN and starts), acts
        if act == Act.STOP:
            assert moment - began >= WARNING


def idle_state(**fields: object) -> Known:
    return replace(Known(done_until=at(MONDAY, 0)), **fields)  # type: ignore[arg-type]


def test_it_starts_waits_for_room_and_gives_up() -> None:
    act, known = decide(WORK, idle_state(), at(MONDAY, 9))
    assert (act, known.waits_until) == (Act.START, at(MONDAY, 9) + PATIENCE)
    waiting = replace(known, runs=True, is_waiting=True)
    assert decide(WORK, waiting, at(MONDAY, 9, 14))[0] == Act.NOTHING
    act, after = decide(WORK, waiting, at(MONDAY, 9, 15))
    assert (act, after.waits_until) == (Act.GIVE_UP, None)
    assert decide(WORK, replace(known, runs=True), at(MONDAY, 9, 15))[0] == Act.NOTHING, "it got its room"
    assert look_at(WORK, replace(after, runs=False)) == at(MONDAY, 17, 50)


def test_it_warns_then_stops_and_a_late_look_still_warns_first() -> None:
    running = idle_state(runs=True, done_until=at(MONDAY, 12))
    act, known = decide(WORK, running, at(MONDAY, 17, 50))
    assert (act, known.stops_at) == (Act.WARN, at(MONDAY, 18))
    assert decide(WORK, known, at(MONDAY, 17, 59))[0] == Act.NOTHING
    assert decide(WORK, known, at(MONDAY, 18))[0] == Act.STOP
    late, known = decide(WORK, running, at(MONDAY, 20))
    assert (late, known.stops_at) == (Act.WARN, at(MONDAY, 20, 10))
    assert decide(WORK, idle_state(), at(MONDAY, 20))[0] == Act.NOTHING, "its start was missed, and is over"
    assert decide(WORK, idle_state(), at(MONDAY, 13))[0] == Act.START, "its start was missed, and still holds"


def test_what_was_done_by_hand_holds_for_the_day_and_not_longer() -> None:
    stopped = idle_state(by_hand_at=at(MONDAY, 8))
    assert decide(WORK, stopped, at(MONDAY, 9))[0] == Act.NOTHING
    assert decide(WORK, stopped, at(MONDAY + DAY, 9))[0] == Act.START
    started = idle_state(by_hand_at=at(MONDAY, 10), runs=True, done_until=at(MONDAY, 10))
    assert decide(WORK, started, at(MONDAY, 17, 50))[0] == Act.NOTHING
    assert decide(WORK, started, at(MONDAY + DAY, 17, 50))[0] == Act.WARN
    _act, warned = decide(WORK, idle_state(runs=True, done_until=at(MONDAY, 12)), at(MONDAY, 17, 50))
    kept = replace(warned, by_hand_at=at(MONDAY, 17, 55))
    assert decide(WORK, kept, at(MONDAY, 18)) == (
        Act.NOTHING,
        replace(kept, stops_at=None, done_until=at(MONDAY, 18)),
    )


def test_a_day_whose_times_the_clock_skips_has_no_turn() -> None:
    night = Week(start=time(2), stop=time(2, 45), days=frozenset({7}), zone=BERLIN)
    assert not turns(night, at(date(2026, 3, 28), 0), at(date(2026, 3, 30), 0))
    assert len(turns(night, at(date(2026, 3, 21), 0), at(date(2026, 3, 23), 0))) == 2


@pytest.mark.parametrize(
    ("zone", "start", "stop"),
    [
        ("Europe/Berlin", time(2), time(3)),
        ("America/New_York", time(2), time(3)),
        ("Europe/London", time(1), time(2)),
        ("Australia/Lord_Howe", time(2), time(2, 30)),
    ],
)
def test_no_change_of_the_clocks_ends_a_schedule(zone: str, start: time, stop: time) -> None:
    week = Week(start=start, stop=stop, days=frozenset({7}), zone=ZoneInfo(zone))
    for day in range(366):
        assert look_at(week, Known(done_until=at(MONDAY + day * DAY, 12)))


def test_a_stop_that_was_missed_is_dropped_when_the_next_start_comes() -> None:
    friday = idle_state(runs=True, done_until=at(MONDAY - 3 * DAY, 12))
    act, known = decide(WORK, friday, at(MONDAY, 8, 55))
    assert (act, known.stops_at) == (Act.WARN, at(MONDAY, 9, 5))
    act, known = decide(WORK, known, at(MONDAY, 9))
    assert (act, known.stops_at) == (Act.NOTHING, None)
    assert look_at(WORK, known) == at(MONDAY, 17, 50)
    queued = idle_state(runs=True, is_waiting=True, waits_until=at(MONDAY - 3 * DAY, 9, 15))
    act, known = decide(WORK, queued, at(MONDAY, 9))
    assert act == Act.GIVE_UP
    assert decide(WORK, replace(known, runs=False, is_waiting=False), at(MONDAY, 9, 1))[0] == Act.START


def test_a_schedule_that_is_set_shortly_before_a_stop_still_stops() -> None:
    running = Known(done_until=at(MONDAY, 17, 50), stops_at=at(MONDAY, 18), runs=True)
    act, known = decide(WORK, begun(WORK, running, at(MONDAY, 17, 55)), at(MONDAY, 17, 55))
    assert (act, known.stops_at) == (Act.WARN, at(MONDAY, 18, 5))
    assert decide(WORK, begun(WORK, running, at(MONDAY, 18)), at(MONDAY, 18))[0] == Act.NOTHING
    assert decide(WORK, begun(WORK, idle_state(), at(MONDAY, 9, 1)), at(MONDAY, 9, 1))[0] == Act.NOTHING
    waits = Known(done_until=at(MONDAY, 9), waits_until=at(MONDAY, 9) + PATIENCE, runs=True, is_waiting=True)
    assert begun(WORK, waits, at(MONDAY, 9, 5)).waits_until == waits.waits_until
    assert begun(WORK, replace(waits, is_waiting=False), at(MONDAY, 9, 5)).waits_until is None


def test_what_comes_next_is_the_announced_stop_and_nothing_on_a_day_decided_by_hand() -> None:
    now = at(MONDAY, 17, 55)
    warned = Known(done_until=at(MONDAY, 17, 50), stops_at=at(MONDAY, 18), runs=True)
    assert coming(WORK, warned, now) == Turn(at(MONDAY, 18), Act.STOP)
    assert coming(WORK, replace(warned, stops_at=None), now) == Turn(at(MONDAY + DAY, 9), Act.START)
    by_hand = Known(done_until=at(MONDAY, 10), by_hand_at=at(MONDAY, 10), runs=True)
    assert coming(WORK, by_hand, at(MONDAY, 10)) == Turn(at(MONDAY + DAY, 9), Act.START)

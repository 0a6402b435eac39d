"""Times at which a weekly schedule starts and stops a workspace, in its person's time zone. Pure.

A time of the day means the first instant at which the clock there shows that time or a later one. So where the clock
is put forward, a time that it skips is the instant of the jump; where it is put back, a time that it shows twice is the
first of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

WARNING = timedelta(minutes=10)  # before a stop
PATIENCE = timedelta(minutes=15)  # in the queue, for a start
SHORTEST = timedelta(minutes=30)  # from start to stop
DAY = timedelta(days=1)
MOMENT = timedelta(microseconds=1)  # the shortest time of the database


class Act(StrEnum):
    NOTHING = "nothing"
    START = "start"
    WARN = "warn"
    STOP = "stop"
    GIVE_UP = "give_up"


@dataclass(frozen=True, kw_only=True)
class Week:
    """Times at which it starts and stops, on these days (1: Monday). A stop that is earlier comes on the next day."""

    start: time
    stop: time
    days: frozenset[int]
    zone: ZoneInfo


@dataclass(frozen=True)
class Turn:
    """A start or a stop, and when to act for it: a stop is announced first."""

    at: datetime
    act: Act

    @property
    def due_at(self) -> datetime:
        return self.at - WARNING if self.act == Act.STOP else self.at


@dataclass(frozen=True, kw_only=True)
class Known:
    """State of a schedule and its workspace."""

    # Turns that were due until then are done.
    done_until: datetime
    # A stop that was announced, and a start that waits in the queue until then.
    stops_at: datetime | None = None
    waits_until: datetime | None = None
    # When a person last started, stopped or kept it: that holds for the rest of their day.
    by_hand_at: datetime | None = None
    runs: bool = False  # it is wanted to run
    is_waiting: bool = False  # the start of the schedule is still in the queue


def instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return the first instant, in UTC, at which the clock shows this time of the day or a later one."""
    wall = datetime.combine(day, at.replace(fold=0))
    found = wall.replace(tzinfo=zone).astimezone(UTC)  # fold=0: the first of two; in a gap, as before it
    if found.astimezone(zone).replace(tzinfo=None) == wall:
        return found
    before, after = int((found - DAY).timestamp()), int(found.timestamp())
    while after - before > 1:  # the jump: clocks change at whole seconds
        middle = (before + after) // 2
        shown = datetime.fromtimestamp(middle, zone).replace(tzinfo=None)
        before, after = (before, middle) if shown >= wall else (middle, after)
    return datetime.fromtimestamp(after, UTC)


def turns(week: Week, after: datetime, until: datetime) -> list[Turn]:
    """Return the turns that are due in this time, in order."""
    found = sorted(_turns(week, after, until), key=lambda turn: turn.due_at)
    return [turn for turn in found if after < turn.due_at <= until]


def _turns(week: Week, after: datetime, until: datetime) -> Iterator[Turn]:
    day = after.astimezone(week.zone).date() - 2 * DAY
    while day <= until.astimezone(week.zone).date() + DAY:
        if day.isoweekday() in week.days:
            start = instant(day, week.start, week.zone)
            stop = instant(day if week.stop > week.start else day + DAY, week.stop, week.zone)
            if stop - start > WARNING:  # a jump of the clock may leave too little
                yield Turn(start, Act.START)
                yield Turn(stop, Act.STOP)
        day += DAY


def next_due(week: Week, after: datetime) -> Turn | None:
    """Return the turn that is due next; None without any day."""
    # Two weeks: a change of the clocks may skip the times of a schedule's only day.
    return next(iter(turns(week, after, after + 16 * DAY)), None)


def coming(week: Week, known: Known, now: datetime) -> Turn | None:
    """Return the next start or stop that will be carried out, as far as is known now."""
    if known.stops_at is not None and known.runs:
        return Turn(known.stops_at, Act.STOP)
    found = turns(week, known.done_until, now + 16 * DAY)
    return next((turn for turn in found if turn.at > now and not _decided_by_hand(week, known, turn)), None)


def begun(week: Week, known: Known, now: datetime) -> Known:
    """Return the state of a schedule that is set now.

    What would have been earlier is not made up. A stop that lies ahead still comes, though it would have been
    announced by now. A start in the queue waits no longer than before.
    """
    ahead = [turn.due_at for turn in turns(week, now - WARNING, now) if turn.at > now]
    done_until = min(ahead) - MOMENT if ahead else now
    waits_until = known.waits_until if known.is_waiting else None
    return replace(known, done_until=done_until, stops_at=None, waits_until=waits_until)


def decide(week: Week, known: Known, now: datetime) -> tuple[Act, Known]:
    """Return what to do now, and the state after it. Of several turns that were missed only the last counts."""
    due = turns(week, known.done_until, now)
    turn = due[-1] if due else None
    if turn and turn.act == Act.START and known.runs and known.stops_at is not None:
        known = replace(known, stops_at=None)  # a stop that came too late: it is to run by now
    act, known = _go_on(known, now)
    if act != Act.NOTHING and turn and turn.act == Act.START:
        return act, replace(known, done_until=turn.due_at - MOMENT)  # the next look starts it
    known = replace(known, done_until=max(known.done_until, now))
    if act != Act.NOTHING or turn is None or _decided_by_hand(week, known, turn):
        return act, known
    if turn.act == Act.START and not known.runs:
        return Act.START, replace(known, waits_until=now + PATIENCE)
    if turn.act == Act.STOP and known.runs and known.stops_at is None:
        return Act.WARN, replace(known, stops_at=max(turn.at, now + WARNING), waits_until=None)
    return Act.NOTHING, known


def _go_on(known: Known, now: datetime) -> tuple[Act, Known]:
    """Carry out what was announced, or drop it: the run ended, or a person kept it."""
    stops_at, waits_until, by_hand_at = known.stops_at, known.waits_until, known.by_hand_at
    if stops_at is not None and (not known.runs or (by_hand_at and by_hand_at >= stops_at - WARNING)):
        stops_at = None
    if waits_until is not None and not known.is_waiting:
        waits_until = None
    is_stop = stops_at is not None and now >= stops_at
    gives_up = not is_stop and waits_until is not None and now >= waits_until
    after = replace(
        known,
        stops_at=None if is_stop else stops_at,
        waits_until=None if is_stop or gives_up else waits_until,
    )
    return Act.STOP if is_stop else Act.GIVE_UP if gives_up else Act.NOTHING, after


def _decided_by_hand(week: Week, known: Known, turn: Turn) -> bool:
    if known.by_hand_at is None:
        return False
    return known.by_hand_at.astimezone(week.zone).date() == turn.at.astimezone(week.zone).date()


def look_at(week: Week, known: Known) -> datetime | None:
    """Return when to look next; None: never."""
    turn = next_due(week, known.done_until)
    times = (turn.due_at if turn else None, known.stops_at, known.waits_until)
    return min((at for at in times if at is not None), default=None)

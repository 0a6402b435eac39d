"""Forecast of when waiting claims start, as a range that holds eight of ten starts. Pure: no database, no clock.

Nobody knows when other runs end, only how long such runs lasted before (`lengths.py`). So some futures are simulated
(`plays.py`), each with ends drawn from those durations. The middle eight of ten starts of a claim are its range.
Claims that come later and go first are not simulated but learned: if a start falls outside its range, the ranges of
that pool are stretched a little to that side; otherwise they shrink, by less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from math import exp, inf
from random import Random
from uuid import UUID

from .lengths import Lengths
from .order import in_order
from .plays import Ground, most_seconds, play
from .standing import backs_off, standing_by
from .state import PoolState, Reason, Run, Waiting

PLAYS = 20
FEWEST_PLAYS = 8
SHORT_QUEUE = 100
ORDERS = 97
OUTSIDE = 0.1  # of the starts on either side of the range
# Learning lags behind the facts: it aims a little below OUTSIDE, so that the promise holds while they change.
# The steps are small: one late start says little about the next.
LEARNED_OUTSIDE = 0.08
LEARNS = 0.1
MOST_STRETCH = 32.0
# Least width of a range, or this part of the wait if that is more: ends are not proven to the minute. So other ranges
# stay narrower: a start forecast in three minutes that came in five says nothing about one that is a day away.
NARROWEST = timedelta(minutes=20)
NARROWEST_PART = 0.1
# A start this soon is reported as likely: such ranges are narrow, and hold as often as the others.
SOON = timedelta(hours=2)


class Confidence(StrEnum):
    LIKELY = "likely"
    ROUGH = "rough"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Range:
    """Range of eight of ten starts. `latest` None: it starts not before `earliest`, and nobody knows when."""

    earliest: datetime
    latest: datetime | None

    @property
    def middle(self) -> datetime:
        return self.earliest if self.latest is None else self.earliest + (self.latest - self.earliest) / 2


@dataclass(frozen=True)
class Stretch:
    """Factors of the wait by which a pool's ranges reach earlier and later than the simulated ones."""

    early: float = 1.0
    late: float = 1.0

    def learn(self, told: Range, started_at: datetime) -> Stretch:
        """Return the stretch after one start. In the long run, one of ten at most is outside on either side."""
        if told.latest is None:
            return self
        return Stretch(
            _step(self.early, started_at < told.earliest), _step(self.late, started_at > told.latest)
        )


def _step(stretch: float, was_outside: bool) -> float:
    wanted = stretch * exp(LEARNS * (was_outside - LEARNED_OUTSIDE))
    return min(max(wanted, 1 / MOST_STRETCH), MOST_STRETCH)


AS_PLAYED = Stretch()


def forecast(
    state: PoolState, lengths: Lengths, stretch: Stretch = AS_PLAYED, plays: int = PLAYS
) -> dict[UUID, Range]:
    """Return the range of each waiting claim. A claim is left out if no known end lets it start."""
    found, queue = _who_is_played(state)
    if not queue:
        return found
    futures = [play(*future) for future in _futures(state, queue, lengths, plays)]
    for at, claim in enumerate(queue):
        told = _range(sorted(starts[at] for starts in futures), state.now, stretch)
        if told is not None:
            found[claim.claim] = told
    return found


def forecast_of(
    claim: UUID, state: PoolState, lengths: Lengths, stretch: Stretch = AS_PLAYED, plays: int = PLAYS
) -> Range | None:
    """Return the range of one claim alone. Each future is simulated only up to its start."""
    found, queue = _who_is_played(state)
    asked = next((at for at, waiting in enumerate(queue) if waiting.claim == claim), None)
    if asked is None:
        return found.get(claim)
    starts = sorted(play(*future, asked)[asked] for future in _futures(state, queue, lengths, plays))
    return _range(starts, state.now, stretch) or found.get(claim)


def _who_is_played(state: PoolState) -> tuple[dict[UUID, Range], list[Waiting]]:
    """Return the known ranges of claims on standby, and the claims to simulate in order."""
    stand_by = standing_by(state)
    known = {pk: told for pk, why in stand_by.items() if (told := _not_before(why)) is not None}
    queue = [
        claim
        for claim in in_order(state, stand_by)
        if claim.claim not in stand_by or _comes_back(state, claim)
    ]
    return known, queue


def _futures(
    state: PoolState, queue: Sequence[Waiting], lengths: Lengths, plays: int
) -> Iterator[tuple[Ground, list[float], list[float]]]:
    """Yield for each future its initial state, the remaining time of each run and each claim's duration."""
    ground = Ground(state, queue)
    ends = [_remaining(state.now, run, lengths, plays) for node in state.nodes for run in node.runs]
    lasts = [_lasting(claim, lengths, plays) for claim in queue]
    for number in range(plays):
        yield ground, [end[number] for end in ends], [last[number] for last in lasts]


def _comes_back(state: PoolState, claim: Waiting) -> bool:
    """Return True if it is in back-off and some node may hold it afterwards."""
    return backs_off(state, claim) and any(node.without_ours.holds(claim.need) for node in state.nodes)


def enough_plays(state: PoolState) -> int:
    """Return how many futures to simulate: fewer for a long queue, so that its repeated forecasts stay quick."""
    return max(FEWEST_PLAYS, min(PLAYS, PLAYS * SHORT_QUEUE // max(1, len(state.waiting))))


def confidence(told: Range | None, now: datetime) -> Confidence:
    """Return how sure a range is, by its latest end: the farther, the more other claims come in between."""
    if told is None or told.latest is None:
        return Confidence.UNKNOWN
    return Confidence.LIKELY if told.latest - now <= SOON else Confidence.ROUGH


def moved(told: Range | None, now_told: Range | None, now: datetime) -> bool:
    """Return True if a side moved by more than a minute and a tenth of the wait, or the range is over."""
    if told is None or now_told is None:
        return told is not now_told
    if told.latest is None or now_told.latest is None:
        return told != now_told
    least = max(timedelta(minutes=1), (now_told.latest - now) / 10)
    return (
        abs(told.earliest - now_told.earliest) > least
        or abs(told.latest - now_told.latest) > least
        or told.latest < now
    )


def _not_before(why: Reason) -> Range | None:
    """Return a range if the reason names the day from which it no longer holds."""
    day = why.data.get("from")
    return Range(datetime.fromisoformat(day).replace(tzinfo=UTC), None) if day else None


def _remaining(now: datetime, run: Run, lengths: Lengths, plays: int) -> list[float]:
    """Return how long a run goes on in each future, in seconds."""
    most = most_seconds(run, now)
    asked = (run.ends_at - run.admitted_at).total_seconds() if run.ends_at else None
    age = max(0.0, (now - run.admitted_at).total_seconds())
    curve = lengths.curve(run.tenant, run.user, asked)
    return [min(left + 1, most) for left in curve.each_left(age, _shares(run.claim, plays))]


def _lasting(claim: Waiting, lengths: Lengths, plays: int) -> list[float]:
    """Return how long a waiting claim will last in each future, in seconds."""
    asked = claim.lasts.total_seconds() if claim.lasts else None
    curve = lengths.curve(claim.tenant, claim.user, asked)
    return curve.each_left(0, _shares(claim.claim, plays))


@cache
def _orders(plays: int) -> tuple[tuple[float, ...], ...]:
    """Return the same evenly spread shares in many orders, always alike: a forecast moves when the facts do."""
    random = Random(plays)
    shares = [(number + 0.5) / plays for number in range(plays)]
    return tuple(tuple(random.sample(shares, plays)) for _ in range(ORDERS))


def _shares(claim: UUID, plays: int) -> tuple[float, ...]:
    """Return a share for each future, such that over all of them a run ends early as often as late."""
    return _orders(plays)[claim.int % ORDERS]


def _range(starts: Sequence[float], now: datetime, stretch: Stretch) -> Range | None:
    """Return the middle eight of ten of the ordered starts, stretched; None if too many never come."""
    middle, early, late = (_quantile(starts, share) for share in (0.5, OUTSIDE, 1 - OUTSIDE))
    if late == inf:
        return None
    least = max(NARROWEST.total_seconds(), NARROWEST_PART * middle) / 2
    earliest = max(0.0, min(early, middle - least)) / stretch.early
    latest = max(late, middle + least) * stretch.late
    return Range(
        now + timedelta(seconds=earliest), now + timedelta(seconds=max(latest, earliest + 2 * least))
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    at = share * len(ordered) - 0.5
    low = max(0, int(at))
    high = min(low + 1, len(ordered) - 1)
    if ordered[high] == inf:
        return inf
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

"""Forecast of when waiting claims start, as a range that holds eight of ten starts. Pure: no database, no clock.

Nobody knows when other runs end, only how long such runs lasted before (`lengths.py`). So the queue is planned several
times by its own rules (`decide.plan`), each time with ends drawn from those durations. The middle eight of ten starts
of a claim are its range. Claims that come later and go first are not planned but learned: if a start falls outside its
range, the ranges of that pool are stretched a little to that side; otherwise they shrink, by less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from math import exp, inf
from random import Random
from uuid import UUID

from .decide import plan
from .lengths import Lengths
from .state import PoolState, Reason, Run, Waiting
from .walk import Walk
from .why import backs_off

# Number of drawn futures; few of them for a long queue, and while somebody types.
DRAWS, FEW_DRAWS = 8, 4
LONG_QUEUE = 200
# Only the front of a long queue is planned: farther back, ranges are too wide to be shown.
FRONT = 100
# A run that reports its progress ends after this part of the time that it expects, or up to so much more of it.
LEAST_OF_EXPECTED, EXPECTED_SPREAD = 0.8, 0.6
PROOF_SECONDS = 60.0  # from the end of a run to the proof of it
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
# A wider range is no help to anybody: it is reported as unknown.
WIDEST = timedelta(hours=6)
# A shown range is replaced only if a side moves by this part of the time left, and by the precision of shown times.
MOVED_PART = 0.25
MOVED_LEAST = timedelta(minutes=5)


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
    """Factors of the wait by which a pool's ranges reach earlier and later than the drawn ones."""

    early: float = 1.0
    late: float = 1.0

    def learn(self, shown: Range, started_at: datetime) -> Stretch:
        """Return the stretch after one start. In the long run, one of ten at most is outside on either side."""
        if shown.latest is None:
            return self
        return Stretch(
            _step(self.early, started_at < shown.earliest), _step(self.late, started_at > shown.latest)
        )


def _step(stretch: float, was_outside: bool) -> float:
    wanted = stretch * exp(LEARNS * (was_outside - LEARNED_OUTSIDE))
    return min(max(wanted, 1 / MOST_STRETCH), MOST_STRETCH)


AS_DRAWN = Stretch()


def forecast(
    state: PoolState, lengths: Lengths, stretch: Stretch = AS_DRAWN, draws: int = DRAWS
) -> dict[UUID, Range]:
    """Return the range of each claim at the front of the queue. A claim that may never start is left out."""
    return forecast_from(Walk(state), lengths, stretch, draws)


def forecast_from(walk: Walk, lengths: Lengths, stretch: Stretch, draws: int) -> dict[UUID, Range]:
    """Return the same from a walk along the queue that was made already."""
    state = walk.state
    found = {pk: shown for pk, why in walk.standing_by.items() if (shown := _not_before(why)) is not None}
    for claim, drawn in _starts(walk, _front(walk), lengths, draws).items():
        shown = _range(sorted(drawn), state.now, stretch)
        if shown is not None:
            found[claim] = shown
    return found


def _front(walk: Walk) -> PoolState:
    """Return the state with the front of the queue: the first that wait for room, and the first at a limit."""
    able = [
        claim for claim in walk.order if claim.claim not in walk.standing_by or backs_off(walk.state, claim)
    ]
    of_each_kind = [
        [claim for claim in able if (claim.claim in walk.limited) == is_limited][:FRONT]
        for is_limited in (False, True)
    ]
    return replace(walk.state, waiting=tuple(claim for kind in of_each_kind for claim in kind))


def _starts(walk: Walk, state: PoolState, lengths: Lengths, draws: int) -> dict[UUID, list[float]]:
    """Return the start of each claim in each future, in seconds from now; inf: never."""
    now = state.now
    runs = [run for node in state.nodes for run in node.runs]
    ends = {run.claim: _remaining(now, run, lengths, draws) for run in runs}
    lasts = {claim.claim: _lasting(claim, lengths, draws) for claim in state.waiting}
    starts: dict[UUID, list[float]] = {claim.claim: [] for claim in state.waiting}
    for number in range(draws if starts else 0):
        # What the pass does not start now waits until something happens.
        first_end = min((end[number] for end in ends.values()), default=now)
        for claim, start in _planned(state, ends, lasts, number).items():
            least = now if claim in walk.admitted else first_end
            starts[claim].append(inf if start is None else (max(start, least) - now).total_seconds())
    return starts


def _planned(
    state: PoolState, ends: Mapping[UUID, list[datetime]], lasts: Mapping[UUID, list[timedelta]], number: int
) -> dict[UUID, datetime | None]:
    return plan(state, lambda run: ends[run.claim][number], lambda claim: lasts[claim.claim][number])


def enough_draws(state: PoolState) -> int:
    """Return how many futures to draw: few for a long queue, so that its repeated forecasts stay quick."""
    return FEW_DRAWS if len(state.waiting) > LONG_QUEUE else DRAWS


def confidence(shown: Range | None, now: datetime) -> Confidence:
    """Return how sure a range is, by its width and its latest end: the farther, the more claims come in between."""
    if shown is None or shown.latest is None or shown.latest - max(shown.earliest, now) > WIDEST:
        return Confidence.UNKNOWN
    return Confidence.LIKELY if shown.latest - now <= SOON else Confidence.ROUGH


def moved(shown: Range | None, new: Range | None, now: datetime) -> bool:
    """Return True if a side moved by more than a quarter of the time left until `shown` ends, or that is over."""
    if shown is None or new is None:
        return shown is not new
    if shown.latest is None or new.latest is None:
        return shown != new
    least = max(MOVED_LEAST, MOVED_PART * (shown.latest - now))
    return (
        abs(shown.earliest - new.earliest) > least
        or abs(shown.latest - new.latest) > least
        or shown.latest < now
    )


def _not_before(why: Reason) -> Range | None:
    """Return a range if the reason names the day from which it no longer holds."""
    day = why.data.get("from")
    return Range(datetime.fromisoformat(day).replace(tzinfo=UTC), None) if day else None


def _remaining(now: datetime, run: Run, lengths: Lengths, draws: int) -> list[datetime]:
    """Return the end of a run in each future."""
    known = [moment for moment in (run.ends_at, run.reclaim_at) if moment is not None]
    most = max(0.0, (min(known) - now).total_seconds()) + PROOF_SECONDS if known else inf
    asked = (run.ends_at - run.admitted_at).total_seconds() if run.ends_at else None
    age = max(0.0, (now - run.admitted_at).total_seconds())
    shares = _shares(run.claim, draws)
    if run.expected_end is not None and run.expected_end > now:
        expected = (run.expected_end - now).total_seconds()
        left = [expected * (LEAST_OF_EXPECTED + share * EXPECTED_SPREAD) for share in shares]
    else:
        left = lengths.curve(run.tenant, run.user, asked).left(age, shares)
    return [now + timedelta(seconds=min(seconds + 1, most)) for seconds in left]


def _lasting(claim: Waiting, lengths: Lengths, draws: int) -> list[timedelta]:
    """Return how long a waiting claim will last in each future."""
    asked = claim.lasts.total_seconds() if claim.lasts else None
    drawn = lengths.curve(claim.tenant, claim.user, asked).left(0, _shares(claim.claim, draws))
    return [timedelta(seconds=min(seconds, asked or inf)) for seconds in drawn]


@cache
def _orders(draws: int) -> tuple[tuple[float, ...], ...]:
    """Return the same evenly spread shares in many orders, always alike: a forecast moves when the facts do."""
    random = Random(draws)
    shares = [(number + 0.5) / draws for number in range(draws)]
    return tuple(tuple(random.sample(shares, draws)) for _ in range(ORDERS))


def _shares(claim: UUID, draws: int) -> tuple[float, ...]:
    """Return a share for each future, such that over all of them a run ends early as often as late."""
    return _orders(draws)[claim.int % ORDERS]


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

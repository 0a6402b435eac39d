"""When those who wait in a pool will start, as a range in which eight of ten starts fall. Pure: no database, no clock.

Nobody knows when the runs of others end, only how long such runs lasted before (`lengths.py`). So some futures are
played (`plays.py`), each with ends drawn from that, and of each claim's starts the middle eight of ten are the range.
What no future knows (who comes later, and goes before) is learned: whenever a start fell outside the range that was
told, the ranges of that pool are stretched a little to that side, else they shrink a little less.
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
# What is learned comes after the facts: with a little less than that as its aim, the promise is kept while they change.
# In small steps: that one start was late says little of the next.
LEARNED_OUTSIDE = 0.08
LEARNS = 0.1
MOST_STRETCH = 32.0
# No range is narrower than this, and a part of the wait: nobody's end is proven to the minute. It makes the others
# narrower: a start that was told for three minutes from then and came in five says nothing of one that is a day away.
NARROWEST = timedelta(minutes=20)
NARROWEST_PART = 0.1
# One that starts so soon is told as likely: such ranges are narrow, and hold as often as the others.
SOON = timedelta(hours=2)


class Confidence(StrEnum):
    LIKELY = "likely"
    ROUGH = "rough"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Range:
    """Between these it starts, eight times of ten. Without a latest: not before, and nobody knows when."""

    earliest: datetime
    latest: datetime | None

    @property
    def middle(self) -> datetime:
        return self.earliest if self.latest is None else self.earliest + (self.latest - self.earliest) / 2


@dataclass(frozen=True)
class Stretch:
    """How much earlier and later than the plays say the ranges of a pool reach, as factors of the wait."""

    early: float = 1.0
    late: float = 1.0

    def learn(self, told: Range, started_at: datetime) -> Stretch:
        """From one start. In the long run at most one of ten falls outside on either side, whatever the plays say."""
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
    """The range of each waiting claim. One that is not in it: no end that anybody knows of lets it start."""
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
    """The range of one of them alone: no future is played further than to its start."""
    found, queue = _who_is_played(state)
    asked = next((at for at, waiting in enumerate(queue) if waiting.claim == claim), None)
    if asked is None:
        return found.get(claim)
    starts = sorted(play(*future, asked)[asked] for future in _futures(state, queue, lengths, plays))
    return _range(starts, state.now, stretch) or found.get(claim)


def _who_is_played(state: PoolState) -> tuple[dict[UUID, Range], list[Waiting]]:
    """What is known of those who stand by, and in order who else waits."""
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
    """For each what it begins with, how long each run goes on, and how long each of the queue lasts."""
    ground = Ground(state, queue)
    ends = [_remaining(state.now, run, lengths, plays) for node in state.nodes for run in node.runs]
    lasts = [_lasting(claim, lengths, plays) for claim in queue]
    for number in range(plays):
        yield ground, [end[number] for end in ends], [last[number] for last in lasts]


def _comes_back(state: PoolState, claim: Waiting) -> bool:
    """It is in back-off, after which some node may hold it."""
    return backs_off(state, claim) and any(node.without_ours.holds(claim.need) for node in state.nodes)


def enough_plays(state: PoolState) -> int:
    """Fewer of a long queue, which is foretold again and again: no pass of it takes long."""
    return max(FEWEST_PLAYS, min(PLAYS, PLAYS * SHORT_QUEUE // max(1, len(state.waiting))))


def confidence(told: Range | None, now: datetime) -> Confidence:
    """How sure a range is, by how soon all of it is over: later, others come in between."""
    if told is None or told.latest is None:
        return Confidence.UNKNOWN
    return Confidence.LIKELY if told.latest - now <= SOON else Confidence.ROUGH


def moved(told: Range | None, now_told: Range | None, now: datetime) -> bool:
    """Whether it is another range to a person: by more than a minute and a tenth of the wait, on either side."""
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
    """Where the reason knows from which day on it is over."""
    day = why.data.get("from")
    return Range(datetime.fromisoformat(day).replace(tzinfo=UTC), None) if day else None


def _remaining(now: datetime, run: Run, lengths: Lengths, plays: int) -> list[float]:
    """How long a run goes on in each future, in seconds."""
    most = most_seconds(run, now)
    asked = (run.ends_at - run.admitted_at).total_seconds() if run.ends_at else None
    age = max(0.0, (now - run.admitted_at).total_seconds())
    curve = lengths.curve(run.tenant, run.user, asked)
    return [min(left + 1, most) for left in curve.each_left(age, _shares(run.claim, plays))]


def _lasting(claim: Waiting, lengths: Lengths, plays: int) -> list[float]:
    """How long one that waits will last in each future, in seconds."""
    asked = claim.lasts.total_seconds() if claim.lasts else None
    curve = lengths.curve(claim.tenant, claim.user, asked)
    return curve.each_left(0, _shares(claim.claim, plays))


@cache
def _orders(plays: int) -> tuple[tuple[float, ...], ...]:
    """The same evenly spread shares in many orders. Always the same ones: a forecast moves when the facts do."""
    random = Random(plays)
    shares = [(number + 0.5) / plays for number in range(plays)]
    return tuple(tuple(random.sample(shares, plays)) for _ in range(ORDERS))


def _shares(claim: UUID, plays: int) -> tuple[float, ...]:
    """For each future one, so that over all futures a run ends early as often as late."""
    return _orders(plays)[claim.int % ORDERS]


def _range(starts: Sequence[float], now: datetime, stretch: Stretch) -> Range | None:
    """Of the starts in all futures, in order, the middle eight of ten, stretched."""
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

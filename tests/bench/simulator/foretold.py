"""Forecasts for waiting requests, at first and as their start comes nearer, and the actual starts."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from quotas.scheduling import PoolState, Run
from quotas.scheduling.forecast import AS_DRAWN, Confidence, Range, confidence, enough_draws, forecast
from quotas.scheduling.lengths import Lengths, Past

# As in `quotas/forecasts.py`, which needs a database.
REMEMBERED = 1000
# A third of the waiting requests get a forecast, since forecasts take most of the time.
ONE_OF = 3
# As a start comes nearer: the first forecast whose latest start is at most so many hours away.
WITHIN_HOURS = (1, 2, 4, 12, 24)


@dataclass(frozen=True)
class Told:
    """Forecast range and the actual start. None as range: no forecast was possible."""

    at: datetime
    range: Range | None
    sure: Confidence
    started_at: datetime

    @property
    def is_inside(self) -> bool:
        latest = self.range and self.range.latest
        return bool(self.range and latest and self.range.earliest <= self.started_at <= latest)


class Teller:
    """Forecaster that does without rows what `quotas/forecasts.py` does with them."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.told_within: defaultdict[int, list[Told]] = defaultdict(list)
        self.stretch = AS_DRAWN
        self._ended: deque[Past] = deque(maxlen=REMEMBERED)
        self._known: set[UUID] = set()
        self._first: dict[UUID, tuple[datetime, Range | None]] = {}
        self._within: defaultdict[UUID, dict[int, tuple[datetime, Range]]] = defaultdict(dict)

    def tell(self, look: Callable[[], PoolState], asked_minutes: Callable[[UUID], int | None]) -> None:
        """Make forecasts if a chosen request has begun to wait; its first forecast counts."""
        state = look()
        new = [claim.claim for claim in state.waiting if claim.claim not in self._known]
        self._known.update(new)
        chosen = [claim for claim in new if claim.int % ONE_OF == 0]
        if not chosen:
            return
        found = forecast(state, self._lengths(state, asked_minutes), self.stretch, enough_draws(state))
        for claim in chosen:
            self._first[claim] = state.now, found.get(claim)
        for claim, range_ in found.items():
            self._comes_near(claim, range_, state.now)

    def _comes_near(self, claim: UUID, range_: Range, now: datetime) -> None:
        for hours in WITHIN_HOURS:
            if range_.latest and range_.latest - now <= timedelta(hours=hours):
                self._within[claim].setdefault(hours, (now, range_))

    def started(self, claim: UUID, now: datetime) -> None:
        for hours, (at, near) in self._within.pop(claim, {}).items():
            self.told_within[hours].append(Told(at, near, confidence(near, at), now))
        if claim not in self._first:
            return
        at, range_ = self._first.pop(claim)
        self.told.append(Told(at, range_, confidence(range_, at), now))
        if range_ is not None:
            self.stretch = self.stretch.learn(range_, now)

    def ended(self, run: Run, seconds: float, asked_minutes: int | None) -> None:
        self._ended.append(_past(run, seconds, asked_minutes, has_ended=True))

    def _lengths(self, state: PoolState, asked_minutes: Callable[[UUID], int | None]) -> Lengths:
        going = [
            _past(
                run, (state.now - run.admitted_at).total_seconds(), asked_minutes(run.claim), has_ended=False
            )
            for node in state.nodes
            for run in node.runs
        ]
        return Lengths([*self._ended, *going])


def _past(run: Run, seconds: float, asked_minutes: int | None, *, has_ended: bool) -> Past:
    asked: Any = asked_minutes * 60 if asked_minutes else None
    return Past(run.tenant, run.user, seconds, asked, has_ended)

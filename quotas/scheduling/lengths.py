"""Durations of a pool's runs, learned from earlier ones. Pure: no database, no clock.

People rarely use all of the lifetime that they ask for, and many ask for none. So a run's end is estimated from how
long such runs lasted before, and from its age. A run that was cut off (by its lifetime, or because it still goes on)
shows only that it would have lasted at least that long; the product-limit estimate takes both kinds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import exp, log2
from statistics import NormalDist
from typing import Any
from uuid import UUID

HOUR = 3600.0
# So many runs of one kind predict it better than all kinds together.
ENOUGH = 12
# A run that was stopped this close to its lifetime was cut off by it.
CUT_OFF = 0.97
# Before anything is known: half of the runs last less than three hours, one of ten more than most of a day.
PRIOR_MEDIAN, PRIOR_SPREAD = 3 * HOUR, 1.3


@dataclass(frozen=True)
class Past:
    """Duration of a run that has ended or goes on."""

    tenant: UUID | None
    user: Any
    seconds: float
    asked_seconds: float | None = None
    has_ended: bool = True

    @property
    def was_cut_off(self) -> bool:
        return not self.has_ended or bool(self.asked_seconds and self.seconds >= CUT_OFF * self.asked_seconds)


PRIOR = tuple(
    Past(None, None, PRIOR_MEDIAN * exp(PRIOR_SPREAD * NormalDist().inv_cdf((number + 0.5) / ENOUGH)))
    for number in range(ENOUGH)
)


class Curve:
    """Share of runs that have ended after a number of seconds."""

    def __init__(self, past: Iterable[Past]) -> None:
        steps = sorted((one.seconds, one.was_cut_off) for one in past)
        self.seconds: list[float] = []
        self.ended: list[float] = []  # the part that has ended by then
        left = 1.0
        for number, (seconds, was_cut_off) in enumerate(steps):
            if not was_cut_off:
                left *= 1 - 1 / (len(steps) - number)
                self.seconds.append(seconds)
                self.ended.append(1 - left)

    def left(self, age: float, shares: Iterable[float]) -> list[float]:
        """Return the seconds until these shares of the runs of this age have ended.

        Runs older than all known ones are assumed to go on for up to as long again.
        """
        at = bisect_right(self.seconds, age)
        gone = self.ended[at - 1] if at else 0.0
        left = []
        for share in shares:
            end = bisect_right(self.ended, gone + share * (1 - gone), lo=at)
            if end < len(self.seconds):
                left.append(self.seconds[end] - age)
            else:
                longest = self.seconds[-1] if self.seconds else PRIOR_MEDIAN
                left.append(max(age, longest) * (1 + share) - age)
        return left


@dataclass(frozen=True)
class Lengths:
    """Earlier runs of a pool. The nearest kind with enough runs gives the estimate."""

    past: Sequence[Past] = ()

    @cached_property
    def _kinds(self) -> dict[Hashable, list[Past]]:
        """Runs by kind. Equal runs are put together first: there are far fewer kinds than runs."""
        alike: defaultdict[tuple[UUID | None, Any, float | None], list[Past]] = defaultdict(list)
        for one in self.past:
            alike[one.tenant, one.user, one.asked_seconds].append(one)
        kinds: defaultdict[Hashable, list[Past]] = defaultdict(list)
        for (tenant, user, asked), past in alike.items():
            for kind in self._kinds_of(tenant, user, asked):
                kinds[kind] += past
        return kinds

    @cached_property
    def _numbers(self) -> defaultdict[Any, int]:
        """Number for each tenant and person: ids are slow as keys of repeated look-ups."""
        return defaultdict(count(1).__next__)

    def _kinds_of(self, tenant: UUID | None, user: Any, asked_seconds: float | None) -> list[Hashable]:
        """Return the kinds of a run, the nearest first. Alike lifetimes differ by less than a factor of two."""
        asked = round(log2(max(asked_seconds, 60) / HOUR)) if asked_seconds else None
        of_tenant, of_user = self._numbers[tenant], self._numbers[user]
        return [
            (of_tenant, of_user, asked),
            (of_tenant, of_user),
            (of_tenant, None, asked),
            (of_tenant,),
            (asked,),
            (),
        ]

    @cached_property
    def _curves(self) -> dict[Hashable, Curve | None]:
        """Curves computed so far; None: too few runs of that kind."""
        return {}

    def curve(self, tenant: UUID | None, user: Any, asked_seconds: float | None) -> Curve:
        nearest = self._kinds_of(tenant, user, asked_seconds)
        return next(curve for kind in nearest if (curve := self._curve(kind)) is not None)

    def _curve(self, kind: Hashable) -> Curve | None:
        if kind not in self._curves:
            past = self._kinds.get(kind, [])
            if kind == () and len(past) < 4 * ENOUGH:
                past = [*past, *PRIOR]
            is_enough = kind == () or sum(one.has_ended for one in past) >= ENOUGH
            self._curves[kind] = Curve(past) if is_enough else None
        return self._curves[kind]

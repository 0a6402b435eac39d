"""Busy time of the GPUs that runs held. The room above has the figures, and registers who returns them.

Only GPUs that a run had alone count: whole ones, and instances. The utilization of a shared GPU is that of all its
users. There, and where nothing was measured, there is no figure, which is not zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from quotas import sharing
from quotas.accounting import ledger
from quotas.accounting.hours import MICROSECONDS_OF_AN_HOUR
from quotas.models import Claim


@dataclass(frozen=True)
class HeldInterval:
    """Time for which a run held GPUs, or instances, of its own."""

    run: UUID
    since: datetime
    until: datetime
    is_instance: bool


BusySource = Callable[[Sequence[HeldInterval]], Mapping[tuple[UUID, date], float]]
"""Returns the seconds for which a run's GPUs were busy on a day, by run and day."""
_sources: list[BusySource] = []


def register(source: BusySource) -> None:
    _sources.append(source)


def used_hours(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], Fraction]:
    """Return busy hours by the same keys as `hours`, and never more. No key: nothing was measured. Two queries."""
    begin = datetime.combine(first, time.min, UTC)
    end = min(now, datetime.combine(last, time.max, UTC))
    claims = {claim.pk: claim for claim in _claims(where, begin, end)}
    held = {run: _held(claim, begin, end) for run, claim in claims.items()}
    used: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for (run, day), microseconds in _busy(claims, held).items():
        key = tuple(day if name == "day" else getattr(claims[run], name) for name in by)
        used[key] += Fraction(microseconds, claims[run].pool.units_per_gpu * MICROSECONDS_OF_AN_HOUR)
    return used


def all_held(begin: datetime, end: datetime) -> list[HeldInterval]:
    return [_held(claim, begin, end) for claim in _claims(Q(), begin, end)]


def _claims(where: Q, begin: datetime, end: datetime) -> QuerySet[Claim]:
    """Claims that held GPUs of their own in this time."""
    then = Q(released_at__gt=begin) | Q(released_at=None)
    own = Q(units__gt=0, pool__sharing__in=sharing.kinds_where(lambda way: way.owns_gpus))
    facts = ("tenant", "user", "units", "members", "admitted_at", "released_at")
    of_pool = ("pool__sharing", "pool__resource_name", "pool__units_per_gpu")
    found = Claim.objects.filter(where, then, own, admitted_at__lt=end)
    return found.select_related("pool").only(*facts, *of_pool)


def _held(claim: Claim, begin: datetime, end: datetime) -> HeldInterval:
    assert claim.admitted_at is not None
    until = min(claim.released_at or end, end)
    return HeldInterval(claim.pk, max(claim.admitted_at, begin), until, sharing.of(claim.pool).is_instance)


def _busy(claims: Mapping[UUID, Claim], held: Mapping[UUID, HeldInterval]) -> dict[tuple[UUID, date], int]:
    """Return busy microseconds, limited to the time held: a pod that moved counts on two GPUs for a minute."""
    if not held:
        return {}
    measured: dict[tuple[UUID, date], float] = {}
    for busy in _sources:
        measured |= busy(list(held.values()))
    days = {
        run: dict(ledger.days(held[run].since, held[run].until)) for run in {run for run, _day in measured}
    }
    return {
        (run, day): min(int(seconds * 1_000_000), days[run].get(day, 0) * claims[run].all_units)
        for (run, day), seconds in measured.items()
    }

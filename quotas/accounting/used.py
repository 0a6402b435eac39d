"""How busy the GPUs were that runs held. The room above has the figures, and is asked by the signal `ask_busy`.

Told is what GPUs did that a run had alone: whole ones, and instances that MIG cut off. Where several share a GPU its
use is that of everybody on it, and nobody's own; there, and where nobody measured, nothing is told, which is not none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from quotas.accounting import ledger
from quotas.accounting.hours import MICROSECONDS_OF_AN_HOUR
from quotas.models import Claim, Sharing
from quotas.signals import ask_busy


@dataclass(frozen=True)
class Held:
    """By one run, from when to when: whole GPUs, or instances that MIG cut off."""

    run: UUID
    since: datetime
    until: datetime
    is_instance: bool


def used_hours(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], Fraction]:
    """By the same as `hours` is, and never more; absent: nothing was told. Two queries."""
    begin = datetime.combine(first, time.min, UTC)
    end = min(now, datetime.combine(last, time.max, UTC))
    claims = {claim.pk: claim for claim in _claims(where, begin, end)}
    held = {run: _held(claim, begin, end) for run, claim in claims.items()}
    used: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for (run, day), microseconds in _busy(claims, held).items():
        key = tuple(day if name == "day" else getattr(claims[run], name) for name in by)
        used[key] += Fraction(microseconds, claims[run].pool.units_per_gpu * MICROSECONDS_OF_AN_HOUR)
    return used


def all_held(begin: datetime, end: datetime) -> list[Held]:
    return [_held(claim, begin, end) for claim in _claims(Q(), begin, end)]


def _claims(where: Q, begin: datetime, end: datetime) -> QuerySet[Claim]:
    """That held GPUs then which nobody else had."""
    then = Q(released_at__gt=begin) | Q(released_at=None)
    own = Q(units__gt=0, pool__sharing__in=(Sharing.EXCLUSIVE, Sharing.MIG))
    facts = ("tenant", "user", "units", "admitted_at", "released_at", "pool__sharing", "pool__units_per_gpu")
    return Claim.objects.filter(where, then, own, admitted_at__lt=end).select_related("pool").only(*facts)


def _held(claim: Claim, begin: datetime, end: datetime) -> Held:
    assert claim.admitted_at is not None
    until = min(claim.released_at or end, end)
    return Held(claim.pk, max(claim.admitted_at, begin), until, claim.pool.sharing == Sharing.MIG)


def _busy(claims: Mapping[UUID, Claim], held: Mapping[UUID, Held]) -> dict[tuple[UUID, date], int]:
    """In microseconds. A pod that came anew on another GPU had two within one minute: it held one."""
    if not held:
        return {}
    answers: list[tuple[Any, Any]] = ask_busy.send(sender=Claim, held=list(held.values()))
    told = {key: seconds for _receiver, busy in answers for key, seconds in busy.items()}
    days = {run: dict(ledger.days(held[run].since, held[run].until)) for run in {run for run, _day in told}}
    return {
        (run, day): min(int(seconds * 1_000_000), days[run].get(day, 0) * claims[run].units)
        for (run, day), seconds in told.items()
    }

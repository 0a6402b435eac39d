"""GPU-time, exactly: what the ledger has, and what runs now beyond that. Nothing is written by reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from typing import Any

from django.db.models import BigIntegerField, ExpressionWrapper, F, Q, Sum

from quotas.accounting import ledger
from quotas.models import Claim, LedgerEntry

MICROSECONDS_OF_AN_HOUR = 3_600_000_000


@dataclass(frozen=True)
class GPUHours:
    """Of GPUs, of which a slice is its fraction; and as budgets count them, by the weights of the pools.

    `used` is for how long the GPUs were busy, as far as that was told; None: nothing was.
    """

    allocated: Fraction = Fraction(0)
    weighted: Fraction = Fraction(0)
    used: Fraction | None = None

    def __add__(self, other: GPUHours) -> GPUHours:
        told = [used for used in (self.used, other.used) if used is not None]
        used = sum(told, Fraction(0)) if told else None
        return GPUHours(self.allocated + other.allocated, self.weighted + other.weighted, used)

    @classmethod
    def of(cls, unit_microseconds: int, units_per_gpu: int, weight: Any) -> GPUHours:
        hours = Fraction(unit_microseconds, units_per_gpu * MICROSECONDS_OF_AN_HOUR)
        return cls(hours, hours * Fraction(weight))


def hours(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], GPUHours]:
    """By these (of `tenant_id`, `user_id`, `pool_id`, `day`), from the first day to the last. Two queries.

    `where` is of entries and of claims alike.
    """
    # Whole numbers until the end: by the key, and what its units count.
    units: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    amount = Sum(ExpressionWrapper(F("microseconds") * F("units"), output_field=BigIntegerField()))
    entries = LedgerEntry.objects.filter(where, day__range=(first, last), units__gt=0).order_by()
    for *key, microseconds in entries.values_list(*by, "units_per_gpu", "weight").annotate(amount=amount):
        units[tuple(key)] += int(microseconds)
    begin = datetime.combine(first, time.min, UTC)
    running = Claim.objects.filter(where, state=Claim.State.ADMITTED, units__gt=0).order_by()
    columns = [name for name in by if name != "day"]
    facts = ("units", "settled_until", "admitted_at", "pool__units_per_gpu", "pool__weight")
    for *names, count, settled_until, admitted_at, per_gpu, weight in running.values_list(*columns, *facts):
        for day, microseconds in ledger.days(max(begin, settled_until or admitted_at), now):
            if day <= last:
                key = [day if name == "day" else names[columns.index(name)] for name in by]
                units[*key, per_gpu, weight] += microseconds * count
    found: defaultdict[tuple[Any, ...], GPUHours] = defaultdict(GPUHours)
    for (*key, per_gpu, weight), unit_microseconds in units.items():
        found[tuple(key)] += GPUHours.of(unit_microseconds, per_gpu, weight)
    return found

"""Exact GPU-time: from the ledger, plus the time of current runs beyond it. Reading writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from typing import Any

from django.db.models import BigIntegerField, ExpressionWrapper, F, Q, Sum

from quotas.accounting import ledger
from quotas.models import Claim, LedgerEntry, of_all_members

MICROSECONDS_OF_AN_HOUR = 3_600_000_000


@dataclass(frozen=True)
class GPUHours:
    """Hours of GPUs, where a slice counts as its fraction; and the same weighted by pool, as budgets count.

    `used`: hours for which the GPUs were busy, as far as measured; None: nothing was measured.
    """

    allocated: Fraction = Fraction(0)
    weighted: Fraction = Fraction(0)
    used: Fraction | None = None

    def __add__(self, other: GPUHours) -> GPUHours:
        measured = [used for used in (self.used, other.used) if used is not None]
        used = sum(measured, Fraction(0)) if measured else None
        return GPUHours(self.allocated + other.allocated, self.weighted + other.weighted, used)

    @classmethod
    def of(cls, unit_microseconds: int, units_per_gpu: int, weight: Any) -> GPUHours:
        hours = Fraction(unit_microseconds, units_per_gpu * MICROSECONDS_OF_AN_HOUR)
        return cls(hours, hours * Fraction(weight))


def hours(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], GPUHours]:
    """Return hours by these columns (`tenant_id`, `user_id`, `pool_id`, `day`), both days included. Two queries.

    `where` must fit ledger entries and claims alike.
    """
    # Integers until the end, by key, units per GPU and weight.
    units: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    amount = Sum(ExpressionWrapper(F("microseconds") * F("units"), output_field=BigIntegerField()))
    entries = LedgerEntry.objects.filter(where, day__range=(first, last), units__gt=0).order_by()
    for *key, microseconds in entries.values_list(*by, "units_per_gpu", "weight").annotate(amount=amount):
        units[tuple(key)] += int(microseconds)
    begin = datetime.combine(first, time.min, UTC)
    running = Claim.objects.filter(where, state=Claim.State.ADMITTED, units__gt=0).order_by()
    columns = [name for name in by if name != "day"]
    facts = (of_all_members("units"), "settled_until", "admitted_at", "pool__units_per_gpu", "pool__weight")
    for *names, count, settled_until, admitted_at, per_gpu, weight in running.values_list(*columns, *facts):
        for day, microseconds in ledger.days(max(begin, settled_until or admitted_at), now):
            if day <= last:
                key = [day if name == "day" else names[columns.index(name)] for name in by]
                units[*key, per_gpu, weight] += microseconds * count
    found: defaultdict[tuple[Any, ...], GPUHours] = defaultdict(GPUHours)
    for (*key, per_gpu, weight), unit_microseconds in units.items():
        found[tuple(key)] += GPUHours.of(unit_microseconds, per_gpu, weight)
    return found

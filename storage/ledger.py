"""GiB-months from the ledger of storage: size times the time for which it was promised. A month is 730 hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

from django.db.models import Q

from .models import StorageSpan

MICROSECOND = timedelta(microseconds=1)
GIB_MONTH = 1024 * (timedelta(hours=730) // MICROSECOND)  # in MiB times microseconds


def gib_months(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], Fraction]:
    """Return GiB-months by these columns (`tenant_id`, `user_id`), both days (UTC) included. One query."""
    begin, end = bounds(first, last, now)
    spans = StorageSpan.objects.filter(where, Q(until__isnull=True) | Q(until__gt=begin), since__lt=end)
    amounts: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    for mib, since, until, *key in spans.order_by().values_list("mib", "since", "until", *by):
        amounts[tuple(key)] += mib * overlap(since, until, begin, end)
    return {key: Fraction(amount, GIB_MONTH) for key, amount in amounts.items()}


def bounds(first: date, last: date, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning of the first day and the end of the last, or now if that is earlier."""
    begin = datetime.combine(first, time.min, UTC)
    if last >= now.astimezone(UTC).date():
        return begin, now
    return begin, datetime.combine(last + timedelta(days=1), time.min, UTC)


def overlap(since: datetime, until: datetime | None, begin: datetime, end: datetime) -> int:
    """Return the microseconds of a span between two times. `until`: None if it still lasts."""
    return max(0, (min(until or end, end) - max(since, begin)) // MICROSECOND)

"""GiB-months from the ledger of storage: size times the time for which it was promised. A month is 730 hours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

from django.db.models import Q, Sum, Value
from django.db.models.functions import Coalesce, Greatest, Least

from .models import StorageSpan

MICROSECOND = timedelta(microseconds=1)
GIB_MONTH = 1024 * (timedelta(hours=730) // MICROSECOND)  # in MiB times microseconds


def gib_months(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], Fraction]:
    """Return GiB-months by these columns (`tenant_id`, `user_id`), both days (UTC) included. One query."""
    begin, end = bounds(first, last, now)
    spans = StorageSpan.objects.filter(where, Q(until__isnull=True) | Q(until__gt=begin), since__lt=end)
    # Cut to the period, so that all volumes that were there all the time come as one row per key.
    cut = spans.annotate(
        begins=Greatest("since", Value(begin)), ends=Least(Coalesce("until", Value(end)), Value(end))
    )
    rows = cut.order_by().values_list("begins", "ends", *by).annotate(sum=Sum("mib"))
    amounts: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    for begins, ends, *key, mib in rows:
        amounts[tuple(key)] += int(mib) * ((ends - begins) // MICROSECOND)
    return {key: Fraction(amount, GIB_MONTH) for key, amount in amounts.items()}


def bounds(first: date, last: date, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning of the first day and the end of the last, or now if that is earlier. Equal in the future."""
    begin = datetime.combine(first, time.min, UTC)
    if last >= now.astimezone(UTC).date():
        return begin, max(begin, now)
    return begin, datetime.combine(last + timedelta(days=1), time.min, UTC)

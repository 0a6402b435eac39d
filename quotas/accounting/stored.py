"""GiB-months of storage for the report of usage. The room above has the ledger, and registers who returns them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from django.db.models import Q

StorageSource = Callable[[Q, date, date, Sequence[str], datetime], Mapping[tuple[Any, ...], Fraction]]
"""Returns GiB-months by columns (`tenant_id`, `user_id`) between two days, both included, up to a time."""
_sources: list[StorageSource] = []


def register(source: StorageSource) -> None:
    _sources.append(source)


def gib_months(
    where: Q, first: date, last: date, by: Sequence[str], now: datetime
) -> Mapping[tuple[Any, ...], Fraction]:
    """Return GiB-months by these columns. One query for each room. `where` must fit tenants and users alone."""
    found: defaultdict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    for source in _sources:
        for key, amount in source(where, first, last, by, now).items():
            found[key] += amount
    return found

"""Space that volumes use, as the kubelets of their nodes measure it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from accounts.locks import locked

from . import notices
from .models import FULL_PERCENT, NEARLY_FULL_PERCENT, Volume

MOST = 1000  # per report
# After a warning the use has to fall this far below its threshold before the same warning comes again.
MARGIN_PERCENT = 5
# A file system may be so much larger than its volume. Beyond that it is one that many volumes share.
ROUNDING, ROUNDING_MIB = 1.1, 64


class Measured(NamedTuple):
    """Use of the file system behind a PVC, in MiB."""

    namespace: str
    claim: str
    used_mib: int
    capacity_mib: int


def warned_at(before: int, percent: float) -> int:
    """Return the threshold that the owner has been warned of once the use is so high. 0: none."""
    reached = max((one for one in (NEARLY_FULL_PERCENT, FULL_PERCENT) if percent >= one), default=0)
    return before if reached < before and percent > before - MARGIN_PERCENT else reached


def is_its_own(size_mib: int, capacity_mib: int) -> bool:
    """Return False if the figure is for a file system that the volume shares, such as a node's whole disk."""
    return 0 < capacity_mib <= size_mib * ROUNDING + ROUNDING_MIB


def take(cluster_id: UUID, measured: Iterable[Measured], at: datetime) -> None:
    """Store what a node measured at this time, and notify owners whose volumes have become nearly full."""
    found = {one.claim: one for one in list(measured)[:MOST]}
    if not found:
        return
    is_named = Q(pk__in=filter(None, map(_id_of, found))) | Q(claim_name__in=found)
    with transaction.atomic():
        rows = Volume.objects.filter(is_named, cluster_id=cluster_id, deleted_at=None)
        for row in locked(rows.select_related("tenant", "owner")):
            one = found.get(row.object_name)
            if one is None or row.tenant.namespace != one.namespace:
                continue
            if row.used_at is not None and row.used_at >= at:
                continue
            if is_its_own(row.size_mib, one.capacity_mib):
                _store(row, one, at)


def _store(row: Volume, one: Measured, at: datetime) -> None:
    row.used_mib, row.used_of_mib, row.used_at = max(one.used_mib, 0), one.capacity_mib, at
    level = warned_at(row.used_warned, row.used_percent or 0)
    is_news = level > row.used_warned and row.bin_until is None and not row.is_version
    row.used_warned = level
    row.save(update_fields=["used_mib", "used_of_mib", "used_at", "used_warned"])
    if is_news:
        notices.warn_full(row)


def _id_of(claim: str) -> UUID | None:
    prefix, _, rest = claim.partition("-")
    try:
        return UUID(rest) if prefix == "vol" else None
    except ValueError:
        return None

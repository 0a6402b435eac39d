"""Upkeep of the audit trail: tables for the next months, and the end of months that are older than a setting."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.utils import timezone

from accounts.locks import later_if_busy
from accounts.trail import partitions
from accounts.trail.partitions import month_of


def keep(now: datetime | None = None) -> None:
    """Make the next months' tables, and drop the months that are over. If the trail is busy, the next call does it."""
    now = now or timezone.now()
    with later_if_busy("months of the audit trail"):
        partitions.make_months(now)
        if settings.TRAIL_MONTHS:
            partitions.drop_before(month_of(now, -settings.TRAIL_MONTHS))

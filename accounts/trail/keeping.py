"""Upkeep of the audit trail: tables for the next months, and the end of months that are older than a setting."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.locks import later_if_busy
from accounts.trail import audit, partitions
from accounts.trail.partitions import month_of


def keep(now: datetime | None = None) -> None:
    """Make the next months' tables, and drop the months that are over. If the trail is busy, the next call does it."""
    now = now or timezone.now()
    with later_if_busy("months of the audit trail"):
        partitions.make_months(now)
        if settings.TRAIL_MONTHS:
            forget_before(month_of(now, -settings.TRAIL_MONTHS))


def forget_before(moment: datetime) -> None:
    """Drop the months that end at or before the moment, with an entry in the trail for each that had entries."""
    with transaction.atomic():
        for old, entries in partitions.drop_before(moment):
            assert old.until is not None
            if entries:
                data = {
                    "since": old.since.date().isoformat() if old.since else None,
                    "until": old.until.date().isoformat(),
                    "entries": entries,
                    "months": settings.TRAIL_MONTHS,
                }
                audit.record(None, "trail.forgotten", data=data)

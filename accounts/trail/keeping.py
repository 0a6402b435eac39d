"""Upkeep of the audit trail: tables for the next months, and the end of months that are older than a setting."""

from __future__ import annotations

import logging
from datetime import datetime

from django.conf import settings
from django.db import OperationalError, transaction
from django.utils import timezone
from psycopg.errors import DeadlockDetected, LockNotAvailable

from accounts.trail import audit, partitions
from accounts.trail.partitions import month_of

log = logging.getLogger(__name__)


def keep(now: datetime | None = None) -> None:
    """Make the next months' tables, and drop the months that are over. If the trail is busy, the next call does it."""
    now = now or timezone.now()
    try:
        partitions.make_months(now)
        if settings.TRAIL_MONTHS:
            forget_before(month_of(now, -settings.TRAIL_MONTHS))
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable | DeadlockDetected):
            raise
        log.info("the audit trail is busy: its months are looked after later")


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

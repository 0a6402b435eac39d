"""Wishes for a booking."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction

from django.utils import timezone

from quotas.bookings.rules import Wish

HOUR = timedelta(hours=1)


# Time of import. All tests may take an hour, so future times are several hours ahead.
BEGAN = timezone.now().replace(second=0, microsecond=0)


def soon(hours: float = 24) -> datetime:
    return BEGAN + hours * HOUR


def wish(
    hours: float = 24, *, lasts: float = 2, places: int = 1, gpus_each: float = 1, title: str = "class"
) -> Wish:
    starts_at = soon(hours)
    return Wish(
        title=title,
        starts_at=starts_at,
        ends_at=starts_at + lasts * HOUR,
        places=places,
        gpus_each=Fraction(gpus_each),
    )

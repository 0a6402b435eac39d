"""Start times as shown to programs and people: a range, its confidence, and one time that stands for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from quotas.models import Claim
from quotas.scheduling.forecast import Confidence, Range
from quotas.scheduling.forecast import confidence as sure


def range_of(claim: Claim) -> Range | None:
    return Range(claim.estimated_from, claim.estimated_to) if claim.estimated_from else None


class When(TypedDict):
    """Range of eight in ten starts. `estimated_to` None: not before `estimated_from`, and nobody knows when.

    The range of an unknown confidence is too wide to rely on: people are not shown its times.
    """

    estimated_start: datetime | None
    estimated_from: datetime | None
    estimated_to: datetime | None
    confidence: str


def when(expected: Range | None, now: datetime) -> When:
    """Return the range, cut off at `now`; `estimated_start` is its middle."""
    if expected is None:
        return When(
            estimated_start=None, estimated_from=None, estimated_to=None, confidence=Confidence.UNKNOWN.value
        )
    earliest = max(expected.earliest, now)
    latest = None if expected.latest is None else max(expected.latest, earliest)
    return When(
        estimated_start=Range(earliest, latest).middle,
        estimated_from=earliest,
        estimated_to=latest,
        confidence=sure(expected, now).value,
    )


def forecast_in_words(claim: Claim, now: datetime) -> str:
    """Return the last forecast of a waiting claim in words."""
    said = when(range_of(claim), now)
    return in_words(said["estimated_from"], said["estimated_to"], said["confidence"], now)


def in_words(earliest: datetime | None, latest: datetime | None, confidence: str, now: datetime) -> str:
    """Return e.g. “Between 14:10 and 15:00, probably.” in the reader's zone and language; "" without a range."""
    if earliest is None:
        return ""
    if latest is None:
        return _("Not before %(time)s.") % {"time": time_in_words(earliest, now)}
    if confidence == Confidence.UNKNOWN:
        return _("No reliable estimate yet.")
    if latest - now < timedelta(minutes=10):
        return _("Within the next minutes.")
    if earliest - now < timedelta(minutes=3):
        return _("Expected by %(time)s.") % {"time": time_in_words(latest, now)}
    times = {"from": time_in_words(earliest, now), "to": time_in_words(latest, now, after=earliest)}
    if confidence == Confidence.LIKELY:
        return _("Between %(from)s and %(to)s, probably.") % times
    return _("Estimated between %(from)s and %(to)s.") % times


def time_in_words(moment: datetime, now: datetime, after: datetime | None = None) -> str:
    """Return the time, with its day if that differs from the day of `after` or `now`."""
    local, reference = timezone.localtime(_rounded(moment)), timezone.localtime(after or now)
    if local.date() == reference.date():
        return date_format(local, "H:i")
    if local.date() - reference.date() < timedelta(days=6):
        return date_format(local, _("D H:i"))
    return date_format(local, _("j M H:i"))


def _rounded(moment: datetime) -> datetime:
    """Round down to five minutes: forecasts are no more precise."""
    return moment.replace(minute=moment.minute // 5 * 5, second=0, microsecond=0)

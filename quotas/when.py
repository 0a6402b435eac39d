"""When something starts, as programs and people are told: a range, how sure it is, and one time that stands for it."""

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
    """Eight of ten starts fall between the two. Without a later one: not before the first, and nobody knows when."""

    estimated_start: datetime | None
    estimated_from: datetime | None
    estimated_to: datetime | None
    confidence: str


def when(told: Range | None, now: datetime) -> When:
    """`estimated_start` is the middle of the range."""
    if told is None:
        return When(
            estimated_start=None, estimated_from=None, estimated_to=None, confidence=Confidence.UNKNOWN.value
        )
    earliest = max(told.earliest, now)
    latest = None if told.latest is None else max(told.latest, earliest)
    return When(
        estimated_start=Range(earliest, latest).middle,
        estimated_from=earliest,
        estimated_to=latest,
        confidence=sure(told, now).value,
    )


def told_in_words(claim: Claim, now: datetime) -> str:
    """When a claim that waits starts, as last foretold."""
    said = when(range_of(claim), now)
    return in_words(said["estimated_from"], said["estimated_to"], said["confidence"], now)


def in_words(earliest: datetime | None, latest: datetime | None, confidence: str, now: datetime) -> str:
    """As “Between 14:10 and 15:00, probably.”, in the reader's zone and language; "" where nothing can be said."""
    if earliest is None:
        return ""
    if latest is None:
        return _("Not before %(time)s.") % {"time": _moment(earliest, now)}
    if latest - now < timedelta(minutes=10):
        return _("Within the next minutes.")
    if earliest - now < timedelta(minutes=3):
        return _("By %(time)s, or sooner.") % {"time": _moment(latest, now)}
    times = {"from": _moment(earliest, now), "to": _moment(latest, now, after=earliest)}
    if confidence == Confidence.LIKELY:
        return _("Between %(from)s and %(to)s, probably.") % times
    return _("Roughly between %(from)s and %(to)s.") % times


def _moment(moment: datetime, now: datetime, after: datetime | None = None) -> str:
    """The time; with its day, if that is not the one that is spoken of already."""
    local, reference = timezone.localtime(_rounded(moment)), timezone.localtime(after or now)
    if local.date() == reference.date():
        return date_format(local, "H:i")
    if local.date() - reference.date() < timedelta(days=6):
        return date_format(local, _("D H:i"))
    return date_format(local, _("j M H:i"))


def _rounded(moment: datetime) -> datetime:
    """To five minutes: it is not known any better."""
    return moment.replace(minute=moment.minute // 5 * 5, second=0, microsecond=0)

"""What a row's time means once the clock that wrote it was set back, or stood ahead of ours."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Now


def about(field: str, now: datetime | Now, span: timedelta) -> Q:
    """The field's time is now, give or take that much. One in a later future was written by a clock that was wrong;
    to wait until it comes would be to wait for as long as that clock was set back."""
    return Q(**{f"{field}__range": (now - span, now + span)})

"""Times in rows, when the clock that wrote them was set back or was ahead of ours."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Now


def is_near_now(field: str, now: datetime | Now, span: timedelta) -> Q:
    """Return a condition: the field's time differs from now by at most `span`. A later time comes from a wrong clock;
    waiting for it would take as long as that clock was set back."""
    return Q(**{f"{field}__range": (now - span, now + span)})

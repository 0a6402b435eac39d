"""Durations in words."""

from __future__ import annotations

from django.utils.translation import ngettext


def lifetime(minutes: int) -> str:
    """Duration in its largest whole unit: 90 minutes, 4 hours, 3 days."""
    if minutes % (24 * 60) == 0:
        days = minutes // (24 * 60)
        return ngettext("%(count)d day", "%(count)d days", days) % {"count": days}
    if minutes % 60 == 0:
        hours = minutes // 60
        return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}
    return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}

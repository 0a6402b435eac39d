"""Template filters of jobs' pages."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()

# Icon and colour of a phase of a job or a part: one of those that all statuses share.
LOOKS = {
    "pending": "waiting",
    "running": "starting",
    "ending": "stopping",
    "succeeded": "ready",
    "cancelling": "stopping",
    "cancelled": "stopped",
}


@register.filter
def look(phase: str) -> str:
    return LOOKS.get(phase, phase)


@register.filter
def written(value: Any) -> str:
    """Value of a parameter or of a metric: numbers with at most six digits that count."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).lower() if isinstance(value, bool) else str(value)

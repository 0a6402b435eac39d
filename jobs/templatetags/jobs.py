"""Template filters of jobs' pages."""

from __future__ import annotations

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

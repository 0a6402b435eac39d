"""A meter of live use beside a limit, drawn as on the pages. The words carry the meaning; the bar only shows it."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString


def meter(used: float, limit: float | None, words: str, *, own: float | None = None) -> SafeString:
    """Return a bar and its words; without a limit, the words alone.

    `own` is the own part of the limit. Use beyond it is borrowed, and drawn striped.
    """
    if limit is None:
        return format_html('<span class="usage"><span class="usage-words">{}</span></span>', words)
    is_over = used > limit
    look = "usage usage-over" if is_over else "usage usage-full" if limit and used == limit else "usage"
    return format_html(
        '<span class="{}"><svg aria-hidden="true" focusable="false"><rect class="track" width="100%" height="8" '
        'rx="3"></rect><rect class="fill" width="{}%" height="8" rx="3"></rect>{}</svg>'
        '<span class="usage-words">{}</span></span>',
        look,
        100 if is_over else _percent(used, limit),
        "" if own is None or own >= limit else _beyond(own, min(used, limit), limit),
        words,
    )


def _beyond(own: float, used: float, limit: float) -> SafeString:
    """Draw the borrowed part striped, and a line where the own part ends."""
    ends = _percent(own, limit)
    return format_html(
        '<rect class="borrowed" x="{0}%" width="{1}%" height="8"></rect>'
        '<line class="own" x1="{0}%" x2="{0}%" y1="0" y2="8"></line>',
        ends,
        max(0, _percent(used, limit) - ends),
    )


def _percent(part: float, whole: float) -> int:
    return round(100 * part / whole) if whole else 0

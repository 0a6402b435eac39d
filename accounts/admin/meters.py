"""Live use beside a limit, as the pages' own meter draws it: the words are for everybody, the bar only shows it."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString


def meter(used: float, limit: float | None, words: str, *, own: float | None = None) -> SafeString:
    """A bar and its words. Without a limit there is nothing to measure against: words alone.

    `own`: the part of the limit that is one's own; what is used beyond it is borrowed, and looks so.
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
    """What is borrowed, striped, and a mark where one's own ends."""
    ends = _percent(own, limit)
    return format_html(
        '<rect class="borrowed" x="{0}%" width="{1}%" height="8"></rect>'
        '<line class="own" x1="{0}%" x2="{0}%" y1="0" y2="8"></line>',
        ends,
        max(0, _percent(used, limit) - ends),
    )


def _percent(part: float, whole: float) -> int:
    return round(100 * part / whole) if whole else 0

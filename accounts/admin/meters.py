"""Live use beside a limit, as the pages' own meter draws it: the words are for everybody, the bar only shows it."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString


def meter(used: float, limit: float | None, words: str) -> SafeString:
    """A bar and its words. Without a limit there is nothing to measure against: words alone."""
    if limit is None:
        return format_html('<span class="usage"><span class="usage-words">{}</span></span>', words)
    is_over = used > limit
    percent = 100 if is_over else round(100 * used / limit) if limit else 0
    look = "usage usage-over" if is_over else "usage usage-full" if limit and used == limit else "usage"
    return format_html(
        '<span class="{}"><svg aria-hidden="true" focusable="false"><rect class="track" width="100%" height="8" '
        'rx="3"></rect><rect class="fill" width="{}%" height="8" rx="3"></rect></svg>'
        '<span class="usage-words">{}</span></span>',
        look,
        percent,
        words,
    )

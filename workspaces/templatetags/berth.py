"""Template tags and filters: icons, sizes with their unit, times that tick."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from accounts.preferences import theme_of
from accounts.text import in_gib
from clusters import explain
from quotas.pools.gpu_map import IN_PERCENT
from quotas.scheduling import as_gpus
from quotas.when import in_words
from workloads.spans import lifetime
from workspaces.api.representation import known_jump
from workspaces.models import Workspace
from workspaces.state import story

register = template.Library()

# Above this many GPUs a meter is a bar: cells could no longer be counted at a glance.
MOST_CELLS = 16
SOON = timedelta(minutes=30)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@register.simple_tag
@lru_cache(maxsize=200)  # a page of fifty cards has a hundred of them
def icon(name: str) -> SafeString:
    """An icon of our sprite: decoration only, always beside its word."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("img/icons.svg"),
        name,
    )


@register.simple_tag
def has_ssh_jump() -> bool:
    """Return True if people can connect to their workspaces by name, through Berth."""
    return known_jump() is not None


@register.filter
def mib(amount: int | None) -> str:
    """MiB as people say it: 512 MiB, 16 GiB, 1.5 TiB."""
    return in_gib(amount or 0)


@register.filter
def cores(millicores: int | None) -> str:
    return f"{(millicores or 0) / 1000:g}"


@register.filter
def gpu_name(product: str) -> str:
    """Shorten the product in a node's label as people do: NVIDIA-A100-SXM4-80GB is A100 80GB."""
    words = [
        word for word in product.split("-") if word not in ("NVIDIA", "Tesla", "SXM4", "SXM5", "PCIE", "HBM3")
    ]
    return "\N{NO-BREAK SPACE}".join(words)


@register.filter
def size_gpus(sized: Any) -> str:
    """The GPUs of a workspace or of a size, as people say it: 2 × A100 80GB, 1/7 × A100 80GB, 0.5 × A100 80GB."""
    pool, units = sized.pool, sized.units
    if pool.units_per_gpu == IN_PERCENT:
        return f"{as_gpus(units, IN_PERCENT):g} × {gpu_name(pool.gpu_product) or pool.name}"
    amount = f"{units}/{pool.units_per_gpu}" if pool.units_per_gpu > 1 else str(units)
    return f"{amount} × {gpu_name(pool.gpu_product) or pool.name}"


# The units of time by their seconds, the longest first.
SPANS = {
    86_400: pgettext_lazy("how long", "%s d"),
    3_600: pgettext_lazy("how long", "%s h"),
    60: pgettext_lazy("how long", "%s min"),
    1: pgettext_lazy("how long", "%s s"),
}


def _span(unit_seconds: int) -> str:
    """Format of a duration in the reader's language; some languages write the unit without a space."""
    return str(SPANS[unit_seconds]).replace(" ", "\N{NO-BREAK SPACE}")


@register.simple_tag
def spans() -> str:
    """Formats of durations for `static/js/time.js`, the longest unit first."""
    return "|".join(map(_span, SPANS))


@register.filter
def short_span(span: timedelta | None) -> str:
    """Duration in its largest unit: 40 s, 3 min, 5 h, 2 d. `static/js/time.js` does the same."""
    if span is None:
        return ""
    seconds = max(0, int(span.total_seconds()))
    unit_seconds = next((unit for unit in SPANS if seconds >= unit), 1)
    return _span(unit_seconds) % (seconds // unit_seconds)


@register.filter
def took(span: timedelta | None) -> str:
    """Duration; below a minute to a tenth of a second."""
    if span is not None and span.total_seconds() < 60:
        return _span(1) % f"{max(0.0, span.total_seconds()):.1f}"
    return short_span(span)


def _time(moment: datetime | None, kind: str, words: str) -> str | SafeString:
    if moment is None:
        return ""
    exact = moment.isoformat(timespec="seconds")
    local = timezone.localtime(moment)
    title = date_format(local, "DATETIME_FORMAT") + local.strftime(":%S %Z")  # the format ends with minutes
    return format_html('<time datetime="{}" title="{}" data-{}>{}</time>', exact, title, kind, words)


@register.filter
def ago(moment: datetime | None) -> str | SafeString:
    """Time since a moment in words, with the exact time in a title."""
    if moment is None:
        return ""
    span = timezone.now() - moment
    words = _("just now") if span < timedelta(seconds=10) else _("%(span)s ago") % {"span": short_span(span)}
    return _time(moment, "ago", words)


@register.filter
def since(moment: datetime | None) -> str | SafeString:
    """Duration since a moment; ticks where scripts run."""
    return _time(moment, "since", short_span(timezone.now() - moment) if moment else "")


register.filter("lifetime", lifetime)


@register.filter
def is_soon(moment: datetime) -> bool:
    """True within the last half hour, in which the owner is warned."""
    return moment - timezone.now() <= SOON


@register.filter
def until(moment: datetime | None) -> str | SafeString:
    """Duration until a moment; ticks where scripts run."""
    return _time(moment, "until", _left(moment - timezone.now()) if moment else "")


def _left(span: timedelta) -> str:
    """Duration left; from an hour on in two units, so that half an hour more is visible: 1 h 30 min."""
    words = short_span(span)
    length, least = (DAY, HOUR) if span >= DAY else (HOUR, timedelta(minutes=1))
    if span >= length and span % length >= least:
        words += "\N{NO-BREAK SPACE}" + short_span(span % length)
    return words


register.filter("as_time", parse_datetime)


@register.filter
def when(said: Mapping[str, Any]) -> str:
    """Estimated start in words, from a forecast or a queue as the API returns it."""
    times = [said[name] for name in ("estimated_from", "estimated_to")]
    earliest, latest = (parse_datetime(at) if isinstance(at, str) else at for at in times)
    return in_words(earliest, latest, said["confidence"], timezone.now())


@register.filter
def what_to_do(workspace: Workspace) -> str:
    """Advice about the workspace's message."""
    return story.hint(workspace.message_code, workspace.message_data)


@register.filter
def settings_in_words(names: Iterable[str]) -> str:
    """Names of settings, as the API has them, in words."""
    return ", ".join(str(story.SETTINGS[name]) for name in names)


@register.filter
def cause(code: str) -> str:
    """Code under which the page of all causes lists it, or ""."""
    return explain.listed(code)


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> str:
    """The theme that the person chose, or "" for the system's."""
    request = context.get("request")
    return theme_of(request) if request else ""


@register.inclusion_tag("components/meter.html")
def meter(*, used: float, limit: float, label: str, words: str) -> dict[str, Any]:
    """Meter of used and limit. `words` is the text for everybody; the drawing only repeats it."""
    share = min(1.0, used / limit) if limit else 0.0
    countable = float(limit).is_integer() and float(used).is_integer() and 0 < limit <= MOST_CELLS
    cells = [number < used for number in range(int(limit))] if countable else []
    return {"label": label, "words": words, "percent": f"{share * 100:.1f}%", "cells": cells}

"""Sources of alerts: functions that return all that fires now. Rooms above register theirs in their `apps.py`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from django.db import transaction

from monitoring.alerts.firing import Firing, key_of
from monitoring.models import AlertMember

log = logging.getLogger(__name__)

Source = Callable[[], Iterable[Firing]]
LONGEST = {field.name: field.max_length or 0 for field in AlertMember._meta.fields}
_sources: dict[str, Source] = {}


def register(name: str, function: Source) -> None:
    """Add a source. Keys of its firings need to be unique within it."""
    _sources[name] = function


def read() -> tuple[list[Firing], list[str]]:
    """Return all firings, and the key prefixes of sources that failed: what they told before stays."""
    found: list[Firing] = []
    failed: list[str] = []
    for name, function in _sources.items():
        try:
            with transaction.atomic():
                found += [fitting(name, firing) for firing in function()]
        except Exception:
            if transaction.get_connection().needs_rollback:
                raise  # the database is away
            log.exception("source of alerts %s failed", name)
            failed.append(f"{name}:")
    return found, failed


def fitting(source: str, firing: Firing) -> Firing:
    """Return the firing with the source in its key, cut to what a row holds: one that is too long would end each pass.

    A link that is too long loses its query, or is left out: cut anywhere else it would lead astray. Pure.
    """
    path = firing.link.partition("?")[0]
    return replace(
        firing,
        key=f"{source}:{key_of(firing.key)}",
        code=firing.code[: LONGEST["code"]],
        node=firing.node[: LONGEST["node"]],
        name=firing.name[: LONGEST["name"]],
        link=next((link for link in (firing.link, path) if len(link) <= LONGEST["link"]), ""),
    )

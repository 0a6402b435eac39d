"""Sources of alerts: functions that return all that fires now. Rooms above register theirs in their `apps.py`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from django.db import transaction

from monitoring.alerts.firing import Firing, key_of

log = logging.getLogger(__name__)

Source = Callable[[], Iterable[Firing]]
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
                found += [replace(firing, key=f"{name}:{key_of(firing.key)}") for firing in function()]
        except Exception:
            if transaction.get_connection().needs_rollback:
                raise  # the database is away
            log.exception("source of alerts %s failed", name)
            failed.append(f"{name}:")
    return found, failed

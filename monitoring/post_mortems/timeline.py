"""What happened around the end of a run, from all sources in order of time. Pure: JSON of a record in, entries out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

MOST = 80


@dataclass(frozen=True)
class Entry:
    at: datetime
    source: str
    text: str
    level: str = "info"


def timeline(record: Mapping[str, Any]) -> list[Entry]:
    """Return the newest entries, oldest first."""
    entries = sorted(_entries(record), key=lambda one: one.at)
    return entries[-MOST:]


def _entries(record: Mapping[str, Any]) -> Iterator[Entry]:
    for at, source, text, level in (
        *((one["at"], "Berth", one["message"], one["level"]) for one in record["story"]),
        *((one["at"], _("Cluster"), _event(one), _level(one)) for one in record["events"]),
        *((one["finished_at"], _("Container"), _end(one), "error") for one in record["ends"]),
        *((one["at"], _("GPU driver"), _xid(one), "error") for one in record["xids"]),
        *((one["since"], _("Health"), one["message"], "warning") for one in record["troubles"]),
    ):
        if when := _time(at):
            yield Entry(when, source, text, level)


def _time(text: object) -> datetime | None:
    """Return the time in a text of the cluster or of Berth; None if it holds none."""
    try:
        found = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _event(one: Mapping[str, Any]) -> str:
    times = f" (× {one['count']})" if one["count"] > 1 else ""
    return f"{one['reason']}: {one['message']}{times}"


def _level(one: Mapping[str, Any]) -> str:
    return "warning" if one["type"] == "Warning" else "info"


def _end(one: Mapping[str, Any]) -> str:
    said = {"code": one["exit_code"], "reason": one["reason"] or "–"}
    return _("It ended with exit code %(code)s (%(reason)s).") % said


def _xid(one: Mapping[str, Any]) -> str:
    return f"Xid {one['xid']}" + (f", {one['gpu']}" if one["gpu"] else "")

"""Delay between a change in a cluster and its handling by the watch, for /metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from clusters.transport import Json
from clusters.watch.watching import Changed
from vitals.figures import Counter, Histogram

LAG = Histogram(
    "berth_watch_lag_seconds",
    "From a change's time by the cluster's clock, which counts whole seconds, until it was dealt with here.",
    ("cluster", "kind"),
    bounds=(1, 2, 3, 5, 10, 30, 60, 300),
)
SKIPPED = Counter(
    "berth_watch_skipped_total",
    "Objects that could not be read or written, each time that they were met; the log names them.",
    ("cluster", "kind"),
)


def observe_lag(cluster: str, step: Changed) -> None:
    at = changed_at(step.body) if step.change != "DELETED" else None
    if at is not None:
        LAG.observe((datetime.now(UTC) - at).total_seconds(), cluster, step.body["kind"])


def changed_at(body: Json) -> datetime | None:
    """Return the newest time in the object; None if it holds none, or nonsense."""
    try:
        return max(_times(body), default=None)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _times(body: Json) -> Iterator[datetime]:
    """Yield all times in the object: a binding shows only in a condition, a deletion request only in its own."""
    metadata = body["metadata"]
    told = [entry.get("time") for entry in metadata.get("managedFields") or []]
    told += [one.get("lastTransitionTime") for one in body.get("status", {}).get("conditions") or []]
    yield from filter(None, map(parse_time, told))
    if due := parse_time(metadata.get("deletionTimestamp")):
        yield due - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)


def parse_time(text: str | None) -> datetime | None:
    """Return the time in UTC; None if unreadable: objects may hold any text, and an error would list all anew."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None

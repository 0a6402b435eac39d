"""How late the watch tells what happened, for /metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from clusters.transport import Json
from clusters.watching import Changed
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


def dealt_with(cluster: str, step: Changed) -> None:
    at = changed_at(step.body) if step.change != "DELETED" else None
    if at is not None:
        LAG.observe((datetime.now(UTC) - at).total_seconds(), cluster, step.body["kind"])


def changed_at(body: Json) -> datetime | None:
    """The newest time that the object tells of itself; None where it tells none, or nonsense."""
    try:
        return max(_times(body), default=None)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _times(body: Json) -> Iterator[datetime]:
    """A binding shows in a condition alone, a deletion that was asked for in nothing but its own time."""
    metadata = body["metadata"]
    told = [entry.get("time") for entry in metadata.get("managedFields") or []]
    told += [one.get("lastTransitionTime") for one in body.get("status", {}).get("conditions") or []]
    yield from filter(None, map(moment, told))
    if due := moment(metadata.get("deletionTimestamp")):
        yield due - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)


def moment(text: str | None) -> datetime | None:
    """Who writes an object may write times into it that no calendar has: no reason to list everything anew."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None

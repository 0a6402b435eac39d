"""Tests of the time at which an object was last changed, read from the object itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from clusters.measures import changed_at

MANAGED = [{"time": "2026-03-01T10:00:00Z"}, {"time": "2026-03-01T10:00:05Z"}, {}]
DELETED = {"deletionTimestamp": "2026-03-01T11:00:30Z", "deletionGracePeriodSeconds": 30}
BOUND = {"conditions": [{"type": "PodScheduled", "lastTransitionTime": "2026-03-01T10:02:00Z"}]}


@pytest.mark.parametrize(
    ("metadata", "status", "at"),
    [
        ({"managedFields": MANAGED}, {}, (10, 0, 5)),
        ({"managedFields": MANAGED}, BOUND, (10, 2, 0)),  # a binding has no manager
        ({"managedFields": MANAGED, **DELETED}, BOUND, (11, 0, 0)),
    ],
)
def test_the_newest_time_counts(metadata: dict[str, Any], status: Any, at: tuple[int, int, int]) -> None:
    body = {"metadata": metadata, "status": status}
    assert changed_at(body) == datetime(2026, 3, 1, *at, tzinfo=UTC)


def test_a_time_that_no_calendar_has_counts_for_nothing() -> None:
    """Ignore times that anybody with write access may set: an error would make the watch list everything anew."""
    forged = [{"time": "0000-01-01T00:00:00Z"}, *MANAGED]
    at = changed_at({"metadata": {"managedFields": forged, "deletionTimestamp": "0000-01-01T00:00:00Z"}})
    assert at == datetime(2026, 3, 1, 10, 0, 5, tzinfo=UTC)


def test_one_that_tells_no_time_is_not_measured() -> None:
    assert changed_at({"metadata": {}}) is None

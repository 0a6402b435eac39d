"""Deletion of old GPU tests: the newest of each node stay, and the one whose result counts."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from monitoring.figures import thinning
from monitoring.models import Validation
from monitoring.validation import keeping, queries
from tests.cast import Cast

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)
OLD = keeping.KEPT + timedelta(days=1)


def was_run(cast: Cast, node: str, *outcomes: str, age: timedelta = OLD) -> None:
    """Add tests: the last one of this age, each other an hour before the next."""
    for place, outcome in enumerate(reversed(outcomes)):
        asked = NOW - age - place * timedelta(hours=1)
        ended = asked + timedelta(minutes=1) if outcome else None
        row = Validation.objects.create(
            cluster=cast.cluster, node=node, image="i", outcome=outcome, ended_at=ended
        )
        Validation.objects.filter(pk=row.pk).update(asked_at=asked)


def left(cast: Cast, node: str) -> list[str]:
    """Return the outcomes that are left, the oldest first."""
    return list(queries.of_node(cast.cluster.pk, node).order_by("asked_at").values_list("outcome", flat=True))


def test_the_newest_tests_of_each_node_stay(cast: Cast) -> None:
    was_run(cast, "gpu-1", *["passed"] * 5, *["not-run"] * 19, "passed")
    was_run(cast, "gpu-2", "failed", "passed")
    keeping.forget_old(NOW)
    assert left(cast, "gpu-1") == ["not-run"] * 19 + ["passed"]
    assert left(cast, "gpu-2") == ["failed", "passed"]


def test_recent_tests_stay(cast: Cast) -> None:
    was_run(cast, "gpu-1", *["passed"] * 25, age=keeping.KEPT - timedelta(days=2))
    keeping.forget_old(NOW)
    assert len(left(cast, "gpu-1")) == 25


def test_the_test_whose_result_counts_stays(cast: Cast) -> None:
    was_run(cast, "gpu-1", "passed", "failed", *["not-run"] * 22)
    keeping.forget_old(NOW)
    assert left(cast, "gpu-1") == ["failed"] + ["not-run"] * 20
    assert queries.failing(cast.cluster.pk) == ["gpu-1"]


def test_old_tests_of_a_deleted_node_are_deleted(cast: Cast) -> None:
    was_run(cast, "gone", "failed", "passed")
    was_run(cast, "gone", "passed", age=timedelta(days=1))
    keeping.forget_old(NOW)
    assert left(cast, "gone") == ["passed"]


def test_the_oldest_tests_are_deleted_first_in_batches(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_AT_ONCE", 2)
    was_run(cast, "gpu-1", "failed", "failed", "failed", *["passed"] * 20)
    keeping.forget_old(NOW)
    assert left(cast, "gpu-1") == ["failed"] + ["passed"] * 20


def test_old_tests_are_deleted_when_figures_are_thinned(cast: Cast) -> None:
    was_run(cast, "gpu-1", "failed", *["passed"] * 20)
    assert thinning.thin(time.time())
    assert left(cast, "gpu-1") == ["passed"] * 20

"""Next known end of what a claim waits for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from quotas import forecasts, next_end, queries
from quotas.models import Claim, Pool
from quotas.reasons import REASONS
from quotas.scheduling import Reason
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def running(stage: Stage, ends_at: datetime | None, **values: object) -> Claim:
    claim = stage.running(1, **values)
    Claim.objects.filter(pk=claim.pk).update(ends_at=ends_at)
    return claim


def said(claim: Claim, code: str, **data: object) -> str:
    with timezone.override(UTC), translation.override("en"):
        return next_end.in_words({claim: Reason(code, data)}, NOON).get(claim.pk, "")


def test_the_reason_decides_whose_runs_count(stage: Stage) -> None:
    """Carol of another tenant ends at one, bob of the same tenant at two, alice herself at three."""
    there = running(stage, NOON + timedelta(hours=1), by=stage.cast.carol).node
    running(stage, NOON + timedelta(hours=2), by=stage.cast.bob)
    running(stage, NOON + timedelta(hours=3))
    waits = stage.request(4)
    assert said(waits, "no_free_gpus") == "The first of the runs in this pool ends by 13:00."
    assert said(waits, "quota_full") == "The first of your team's runs ends by 14:00."
    assert said(waits, "memory_limit_full") == "The first of your team's runs ends by 14:00."
    assert said(waits, "person_gpus_full") == "The first of your runs ends by 15:00."
    assert said(waits, "volume_node_full", on=[there]) == "The first of the runs on that node ends by 13:00."
    assert said(waits, "volume_node_full", on=["z"]) == "None of the runs on that node has an end time."
    assert said(waits, "pool_closed") == said(waits, "no_such_code") == ""


def test_runs_without_end_times_are_named_as_such(stage: Stage) -> None:
    running(stage, None)
    running(stage, NOON - timedelta(minutes=1))  # overdue
    waits = stage.request(4)
    assert said(waits, "fragmented") == "None of the runs in this pool has an end time."
    assert said(waits, "borrow_limit") == "None of your team's runs has an end time."
    assert said(waits, "behind_own_request") == "None of your runs has an end time."


def test_each_code_is_a_reason() -> None:
    assert set(next_end.WAITS_FOR) <= set(REASONS)


def test_a_request_without_a_reliable_estimate_gets_the_next_end(stage: Stage) -> None:
    """A new pool has learned no durations, so its ranges are wide until an end is known."""
    runs = [stage.running(4), stage.running(4, by=stage.cast.carol)]
    waits = stage.request(2)
    stage.admit()
    before = queries.queues_of([waits.pk])[waits.pk]
    assert "end" not in before["reason"]["message"]
    forecasts.update_forecasts(stage.pool.pk)
    after = queries.queues_of([waits.pk])[waits.pk]
    assert after["confidence"] == "unknown"
    assert (
        after["reason"]["message"]
        == before["reason"]["message"] + " None of your team's runs has an end time."
    )
    Claim.objects.filter(pk=runs[0].pk).update(ends_at=timezone.now() + timedelta(hours=1))
    Pool.objects.update(forecast_at=None)
    forecasts.update_forecasts(stage.pool.pk)
    known = queries.queues_of([waits.pk])[waits.pk]
    assert (known["confidence"], known["reason"]) == ("likely", before["reason"])

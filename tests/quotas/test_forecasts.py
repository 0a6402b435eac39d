"""Forecasts for waiting requests: position, GPUs ahead, and time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from quotas import forecasts, queries, signals
from quotas.forecasts import lengths_of, update_forecasts
from quotas.models import Claim, Pool
from quotas.when import in_words
from tests.shared.stage import Stage, again

pytestmark = pytest.mark.django_db


def look(stage: Stage) -> None:
    """Run a pass and a forecast, as the worker does some time after the last forecast."""
    long_ago = timezone.now() - 2 * forecasts.AT_MOST_EVERY
    Pool.objects.filter(forecast_at__isnull=False).update(forecast_at=long_ago)
    stage.admit()
    update_forecasts(stage.pool.pk)


def full(stage: Stage) -> list[Claim]:
    """Fill both nodes by a run of each tenant; nobody waits."""
    return [stage.running(4), stage.running(4, by=stage.cast.carol)]


def test_waiting_requests_have_a_position_and_a_forecast(stage: Stage) -> None:
    full(stage)
    stage.quota(8)
    first, second = stage.request(4), stage.request(2)
    look(stage)
    queues = queries.queues_of([first.pk, second.pk])
    assert [queues[claim.pk]["position"] for claim in (first, second)] == [1, 2]
    assert [queues[claim.pk]["gpus_ahead"] for claim in (first, second)] == [0, 4]
    now = timezone.now()
    for queue in queues.values():
        assert queue["estimated_from"] and queue["estimated_to"] and queue["estimated_start"]
        assert now <= queue["estimated_from"] < queue["estimated_start"] < queue["estimated_to"]


def test_nothing_is_written_while_nothing_changes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Claim] = []
    monkeypatch.setattr(signals.standing_changed, "receivers", [])
    signals.standing_changed.connect(hear := lambda claims, **_: told.extend(claims), weak=False)
    full(stage)
    waits = stage.request(2)
    look(stage)
    assert [claim.pk for claim in told] == [waits.pk]
    before = Claim.objects.values().get(pk=waits.pk)
    look(stage)
    assert len(told) == 1
    assert Claim.objects.values().get(pk=waits.pk) == before
    signals.standing_changed.disconnect(hear)


def test_the_first_forecast_is_kept_to_learn_from(stage: Stage) -> None:
    runs = full(stage)
    waits = stage.request(2)
    look(stage)
    first = again(waits)
    assert (first.told_from, first.told_to) == (first.estimated_from, first.estimated_to)
    Claim.objects.filter(pk=runs[0].pk).update(ends_at=timezone.now() + timedelta(minutes=1))
    look(stage)
    later = again(waits)
    assert later.estimated_to and first.estimated_to and later.estimated_to < first.estimated_to
    assert (later.told_from, later.told_to) == (first.told_from, first.told_to)


def test_a_start_outside_its_forecast_changes_the_pools_stretch(stage: Stage) -> None:
    full(stage)
    stage.quota(8)
    waits = stage.request(2)
    look(stage)
    now = timezone.now()
    Claim.objects.filter(pk=waits.pk).update(
        state=Claim.State.ADMITTED,
        node="gpu-1",
        nodes=["gpu-1"],
        admitted_at=now,
        told_from=now - timedelta(hours=2),
        told_to=now - timedelta(hours=1),
    )
    stage.request(2)
    look(stage)
    pool = Pool.objects.get(pk=stage.pool.pk)
    assert pool.forecast_late > 1 > pool.forecast_early


def test_forecasts_are_updated_at_most_every_second(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasts, "AT_MOST_EVERY", timedelta(hours=1))
    full(stage)
    stage.request(2)
    look(stage)
    late = stage.request(2)
    update_forecasts(stage.pool.pk)
    assert again(late).position is None
    look(stage)
    assert again(late).position == 2


def test_a_request_before_its_first_pass_is_last_in_the_queue(stage: Stage) -> None:
    full(stage)
    stage.request(2)
    look(stage)
    new = stage.request(2)
    queue = queries.queues_of([new.pk])[new.pk]
    assert (queue["position"], queue["ahead"], queue["gpus_ahead"]) == (2, 1, 2)
    assert (queue["estimated_start"], queue["confidence"]) == (None, "unknown")


def test_lengths_are_learned_from_ended_runs(stage: Stage) -> None:
    now = timezone.now()
    for hours in range(1, 14):
        claim = stage.running(1)
        Claim.objects.filter(pk=claim.pk).update(
            state=Claim.State.RELEASED,
            admitted_at=now - timedelta(hours=20),
            released_at=now - timedelta(hours=20 - hours),
        )
    curve = lengths_of(stage.pool, now).curve(stage.cast.demo.pk, stage.cast.alice.user.pk, None)
    assert curve.left(0, [0.5]) == [7 * 3600]


NOON = datetime(2026, 1, 5, 12, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("earliest", "latest", "sure", "words"),
    [
        (130, 180, "likely", "Between 14:10 and 15:00, probably."),
        (130, 450, "rough", "Estimated between 14:10 and 19:30."),
        (600, 900, "rough", "Estimated between 22:00 and Tue 03:00."),
        (130, 900, "unknown", "No reliable estimate yet."),
        (None, None, "unknown", ""),
        (0, 60, "likely", "Expected by 13:00."),
        (0, 5, "likely", "Within the next minutes."),
        (24 * 60 * 27, None, "unknown", "Not before 1 Feb 12:00."),
    ],
)
def test_when_in_words(earliest: int | None, latest: int | None, sure: str, words: str) -> None:
    times = [None if minutes is None else NOON + timedelta(minutes=minutes) for minutes in (earliest, latest)]
    with timezone.override(UTC), translation.override("en"):
        assert in_words(times[0], times[1], sure, NOON) == words


def test_times_are_in_the_readers_time_zone() -> None:
    at = NOON + timedelta(hours=2), NOON + timedelta(hours=3)
    with timezone.override("Asia/Seoul"), translation.override("en"):
        assert in_words(*at, "likely", NOON) == "Between 23:00 and Tue 00:00, probably."

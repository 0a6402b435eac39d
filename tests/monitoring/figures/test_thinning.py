"""Thinning with age: nothing is counted twice or lost, whatever comes late or is cut off."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from clusters.models import Gpu, Node
from monitoring.figures import thinning
from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.models import AgentState, Figure, Track, Trouble
from tests.cast import Cast, make_cast
from tests.crew import crew, on_its_own

MINUTE, HOUR, DAY = thinning.MINUTE, thinning.HOUR, thinning.DAY
NOW = int(time.time()) // HOUR * HOUR
OF_A_MINUTE = MINUTE // thinning.SECONDS_OF_A_SAMPLE


def rows(step_seconds: int) -> list[tuple[int, int, float | None, int | None]]:
    """Return (time, samples, use, memory)."""
    found = Figure.objects.filter(step_seconds=step_seconds).order_by("at")
    return [
        (row.at, row.samples, row.use_thousandths and row.use_thousandths / 1000, row.memory_mib)
        for row in found
    ]


def told(cast: Cast, at: float, use: float | None = None, memory_mib: float | None = None) -> None:
    put([Sample(TrackIdentity(cast.cluster.pk, "gpu-1", "GPU-0", "GPU 0"), at, use, memory_mib)])


class Killed(Exception):
    pass


class Killing:
    """Stop right after the statement with number `most`: that one was executed, and nothing after it."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        self.left -= 1
        if self.left == 0:
            raise Killed
        return answer


@pytest.mark.django_db
class TestAFigure:
    @pytest.fixture
    def cast(self) -> Cast:
        return make_cast()

    def test_stays_as_it_was_sampled_for_two_hours(self, cast: Cast) -> None:
        told(cast, NOW - 2 * HOUR + 30, 10)
        assert thinning.thin(NOW)
        assert [samples for _at, samples, _use, _memory in rows(0)] == [1]

    def test_becomes_the_mean_of_its_minute_and_the_most_memory(self, cast: Cast) -> None:
        began = NOW - 3 * HOUR
        for at, use, memory in ((0, 10, 100), (20, 20, 900), (59, 60, 500), (60, 1, 1)):
            told(cast, began + at, use, memory)
        thinning.thin(NOW)
        assert rows(0) == []
        assert rows(MINUTE) == [(began, 3, 30, 900), (began + MINUTE, 1, 1, 1)]

    def test_becomes_ten_minutes_and_hours_with_age_and_is_gone_after_400_days(self, cast: Cast) -> None:
        began = NOW - HOUR
        told(cast, began, 10)
        told(cast, began + 45 * MINUTE, 40)
        for later, step, count in ((3 * DAY, 600, 2), (31 * DAY, 3600, 1), (402 * DAY, 3600, 0)):
            thinning.thin(NOW + later)
            assert (len(rows(step)), Figure.objects.count()) == (count, count)
            if step == HOUR and count:
                assert rows(step) == [(began, 2 * OF_A_MINUTE, 25, None)]

    def test_that_comes_late_is_added_with_its_weight(self, cast: Cast) -> None:
        began = NOW - 3 * HOUR
        for at in range(3):
            told(cast, began + at, 10, 100)
        thinning.thin(NOW)
        told(cast, began + 30, 50, 50)
        thinning.thin(NOW)
        assert rows(MINUTE) == [(began, 4, 20, 100)]

    def test_of_a_minute_weighs_the_same_however_many_its_samples(self, cast: Cast) -> None:
        began = NOW - 3 * DAY
        for at, use in ((0, 100), *((60 + at, 0) for at in range(9))):
            told(cast, began + at, use)
        thinning.thin(NOW)
        assert rows(600) == [(began, 2 * OF_A_MINUTE, 50, None)]

    def test_that_was_not_reported_stays_unknown(self, cast: Cast) -> None:
        began = NOW - 3 * HOUR
        told(cast, began, None, 5)
        told(cast, began + 1, 30, None)
        thinning.thin(NOW)
        assert rows(MINUTE) == [(began, 2, 30, 5)]
        told(cast, began + 60, None, 5)
        thinning.thin(NOW)
        assert rows(MINUTE)[1] == (began + 60, 1, None, 5)

    def test_that_is_too_old_to_keep_is_not_written(self, cast: Cast) -> None:
        told(cast, 0.0, 10)
        told(cast, NOW - 401 * DAY, 10)
        assert Figure.objects.count() == 0

    def test_is_moved_whole_or_not_at_all(self, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        began = NOW - 3 * HOUR
        told(cast, began, 10)
        monkeypatch.setattr(thinning, "MOVE", thinning.MOVE + "; SELECT 1 / 0")
        with pytest.raises(DatabaseError), transaction.atomic():
            thinning.thin(NOW)
        monkeypatch.undo()
        assert (len(rows(0)), rows(MINUTE)) == (1, [])
        thinning.thin(NOW)
        assert (len(rows(0)), len(rows(MINUTE))) == (0, 1)

    def test_is_neither_lost_nor_counted_twice_wherever_thinning_is_cut_off(self, cast: Cast) -> None:
        """Kill the process after its first statement, the next one after its second, and so on."""
        ages = [0, 5, 61, DAY, DAY + 7, 3 * DAY, 3 * DAY + 539, 3 * DAY + 600, 40 * DAY, 40 * DAY + 1]
        for number, age in enumerate(ages):
            told(cast, NOW - 3 * HOUR - age, 10 * number, number)
        for most in range(1, 60):
            with suppress(Killed), connection.execute_wrapper(Killing(most)):
                if thinning.thin(NOW):
                    break
            # Each report is in a minute of its own.
            found = [
                (row, row.samples / (OF_A_MINUTE if row.step_seconds > MINUTE else 1))
                for row in Figure.objects.all()
            ]
            assert sum(weight for _row, weight in found) == len(ages)
            use = sum(weight * (row.use_thousandths or 0) for row, weight in found)
            assert use == pytest.approx(sum(10_000 * number for number in range(len(ages))))
            assert max(row.memory_mib or 0 for row, _weight in found) == len(ages) - 1
        else:
            pytest.fail("it never came to its end")

    def test_of_a_long_pause_is_moved_in_pieces(self, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        for at in range(5):
            told(cast, NOW - DAY + at * HOUR, 10)
        monkeypatch.setattr(thinning, "LONGEST_SECONDS", -1.0)
        assert not thinning.thin(NOW)
        assert len(rows(0)) == 5
        monkeypatch.undo()
        assert thinning.thin(NOW)
        assert (len(rows(0)), len(rows(MINUTE))) == (0, 5)


@pytest.mark.django_db
def test_gpus_and_agents_go_with_their_node_and_tracks_with_their_figures() -> None:
    cast = make_cast()
    now = datetime.now(UTC)
    for node in ("gpu-1", "gpu-2"):
        Gpu.objects.create(cluster=cast.cluster, node=node, uuid=f"GPU-{node}")
        AgentState.objects.create(cluster=cast.cluster, node=node, agent="a", taken_at=now, seen_at=now)
    told(cast, NOW, 10)
    told(cast, NOW - 60, 10)
    Node.objects.filter(name="gpu-2").delete()
    thinning.thin(NOW)
    assert [row.node for model in (Gpu, AgentState) for row in model._default_manager.all()] == ["gpu-1"] * 2
    assert Track.objects.count() == 1
    Track.objects.update(seen_at=now - timedelta(days=402))
    thinning.thin(NOW)
    assert Track.objects.count() == 0


@pytest.mark.django_db
def test_old_troubles_that_are_over_are_deleted() -> None:
    cluster = make_cast().cluster
    since = datetime.now(UTC) - timedelta(days=500)
    for code, days in (("old", 401), ("late", 399), ("lasting", None)):
        ended_at = None if days is None else datetime.now(UTC) - timedelta(days=days)
        Trouble.objects.create(cluster=cluster, about="node", code=code, since=since, ended_at=ended_at)
    thinning.thin(time.time())
    assert sorted(Trouble.objects.values_list("code", flat=True)) == ["lasting", "late"]


@pytest.mark.django_db(transaction=True)
def test_two_processes_thin_each_figure_once() -> None:
    cast = make_cast()
    began = NOW - 5 * HOUR
    for at in range(0, 2 * HOUR, 60):
        told(cast, began + at, 10)
    with crew(3) as threads:
        for done in threads.at_once([partial(on_its_own, partial(thinning.thin, NOW))] * 3):
            done.result()
    thinning.thin(NOW)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(samples), count(*) FROM monitoring_figure")
        assert cursor.fetchone() == (120, 120)

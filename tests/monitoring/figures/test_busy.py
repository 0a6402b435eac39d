"""Used GPU hours of those that were held, as usage reports them, from figures of every age."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring import tasks
from monitoring.figures import busy, thinning
from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.models import BusyDay, Figure, Track
from quotas.accounting import report
from quotas.accounting.hours import hours
from quotas.accounting.used import used_hours
from quotas.models import Claim, LedgerEntry, Pool, Sharing
from tests.crew import crew, on_its_own
from tests.shared.runs import ran, run_of
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db

MINUTE, HOUR, DAY = thinning.MINUTE, thinning.HOUR, thinning.DAY
# Noon, a few days ago: figures that are too old are not stored.
NOON = int(time.time()) // DAY * DAY - 5 * DAY + 12 * HOUR
NOW = datetime.fromtimestamp(NOON + 3 * DAY, UTC)
EVERYTHING = (Q(), date(2000, 1, 1), date(2100, 1, 1))
MIG = "MIG-00000000-0000-4000-8000-00000000000a"


@pytest.fixture
def stage() -> Stage:
    return Stage()


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def held(stage: Stage, since: float, until: float, gpus: int = 1, **values: Any) -> Claim:
    return ran(stage, at(since), (until - since) / HOUR, gpus, **values)


def told(run: Claim, times: Iterable[int], use: float | None, device: str = "GPU-0", **of: Any) -> None:
    of = {"runs": frozenset({run.pk})} | of
    put([Sample(TrackIdentity(run.pool.cluster_id, "gpu-1", device, **of), second, use) for second in times])


def used(*by: str, now: datetime = NOW, where: Q = EVERYTHING[0]) -> dict[Any, float]:
    found = used_hours(where, *EVERYTHING[1:], by, now)
    return {key[0] if len(key) == 1 else key: float(amount) for key, amount in found.items()}


# --- What counts


@pytest.mark.parametrize(
    ("seconds", "gpus", "samples", "used_hours"),
    [
        (HOUR, 1, {"GPU-0": (range(0, HOUR, 15), 50)}, 0.5),
        (HOUR, 2, {"GPU-0": (range(0, HOUR, 15), 100), "GPU-1": (range(0, HOUR, 60), 25)}, 1.25),
        (MINUTE, 1, {"GPU-0": (range(0, 30, 5), 100), "GPU-1": (range(30, MINUTE, 5), 100)}, 1 / 60),
    ],
    ids=["half of an hour", "two GPUs", "one GPU after the other"],
)
def test_use_is_summed_over_time_and_gpus(
    stage: Stage, seconds: int, gpus: int, samples: dict[str, tuple[range, int]], used_hours: float
) -> None:
    run = held(stage, NOON, NOON + seconds, gpus)
    for device, (times, use) in samples.items():
        told(run, (NOON + second for second in times), use, device)
    assert used("tenant_id") == {run.tenant_id: pytest.approx(used_hours)}


def test_only_reported_time_counts_and_idle_is_reported(stage: Stage) -> None:
    run = held(stage, NOON, NOON + 4 * HOUR)
    told(run, range(NOON, NOON + HOUR, 15), 0)
    assert used("tenant_id") == {run.tenant_id: 0}
    told(run, range(NOON + HOUR, NOON + HOUR + 30 * MINUTE, 15), 100)
    assert used("tenant_id") == {run.tenant_id: pytest.approx(0.5)}


def test_silence_does_not_count_in_a_figure_of_an_hour(stage: Stage) -> None:
    run = held(stage, NOON, NOON + HOUR)
    told(run, range(NOON, NOON + 15 * MINUTE, 5), 100)
    thinning.thin(NOON + 40 * DAY)
    assert Figure.objects.get().step_seconds == HOUR
    assert used("tenant_id") == {run.tenant_id: pytest.approx(0.25)}


def test_a_late_figure_beside_its_minute_counts_no_minute_twice(stage: Stage) -> None:
    run = held(stage, NOON, NOON + HOUR)
    told(run, range(NOON, NOON + MINUTE, 15), 100)
    thinning.thin(NOON + 3 * HOUR)
    told(run, range(NOON + 5, NOON + MINUTE, 15), 100)
    assert set(Figure.objects.values_list("step_seconds", flat=True)) == {0, MINUTE}
    assert used("tenant_id") == {run.tenant_id: pytest.approx(1 / 60)}


def test_without_reports_of_use_nothing_is_known(stage: Stage) -> None:
    run = held(stage, NOON, NOON + HOUR)
    assert used("tenant_id") == {}
    told(run, range(NOON, NOON + HOUR, 15), None)
    assert used("tenant_id") == {}


def test_figures_beyond_the_run_do_not_count(stage: Stage) -> None:
    run = held(stage, NOON + 20, NOON + 80)
    told(run, range(NOON, NOON + 5 * MINUTE, 5), 100)
    assert used("tenant_id") == {run.tenant_id: pytest.approx(60 / HOUR)}


def test_a_running_claim_counts_up_to_now(stage: Stage) -> None:
    run = run_of(stage, at(NOON))
    told(run, range(NOON, NOON + HOUR, 5), 100)
    assert used("tenant_id", now=at(NOON + 90)) == {run.tenant_id: pytest.approx(90 / HOUR)}


def test_use_is_split_by_day(stage: Stage) -> None:
    midnight = NOON + 12 * HOUR
    run = held(stage, midnight - HOUR, midnight + HOUR)
    told(run, range(midnight - HOUR, midnight + HOUR, 60), 100)
    today, tomorrow = at(NOON).date(), at(NOON).date() + timedelta(days=1)
    assert used("day") == {today: pytest.approx(1), tomorrow: pytest.approx(1)}
    assert used_hours(Q(), tomorrow, tomorrow, ("tenant_id",), NOW) == {(run.tenant_id,): pytest.approx(1)}


def test_a_mig_instance_is_its_part_of_a_gpu(stage: Stage) -> None:
    """Check with DCGM, which reports the use of MIG devices; the driver alone does not."""
    pool = stage.another_pool("mig", sharing=Sharing.MIG, units_per_gpu=7)
    run = held(stage, NOON, NOON + HOUR, pool=pool)
    told(run, range(NOON, NOON + HOUR, 15), 50, MIG)
    told(run, range(NOON, NOON + HOUR, 15), 100)  # of the whole GPU
    assert used("pool_id") == {pool.pk: pytest.approx(1 / 14)}


def test_use_is_never_more_than_was_held_though_the_pool_was_divided_otherwise(stage: Stage) -> None:
    pool = stage.another_pool("mig", sharing=Sharing.MIG, units_per_gpu=7)
    run = held(stage, NOON, NOON + HOUR, pool=pool)
    told(run, range(NOON, NOON + HOUR, 15), 100, MIG)
    Pool.objects.filter(pk=pool.pk).update(units_per_gpu=2)
    total = report.as_json(report.read(stage.cast.admin, report.parse({}, NOW), NOW))["total"]
    assert total["used_gpu_hours"] == total["allocated_gpu_hours"] == pytest.approx(1 / 7, abs=1e-4)


@pytest.mark.parametrize("sharing", [Sharing.TIME_SLICING, Sharing.MPS, Sharing.HAMI, Sharing.GPU_MANAGER])
def test_use_of_a_shared_gpu_counts_for_no_run(stage: Stage, sharing: Sharing) -> None:
    pool = stage.another_pool("shared", sharing=sharing, units_per_gpu=4)
    run = held(stage, NOON, NOON + HOUR, pool=pool)
    told(run, range(NOON, NOON + HOUR, 15), 100)
    assert used("pool_id") == {}


def test_use_of_a_gpu_with_two_runs_counts_for_neither(stage: Stage) -> None:
    one, other = held(stage, NOON, NOON + HOUR), held(stage, NOON, NOON + HOUR, by=stage.cast.carol)
    told(one, range(NOON, NOON + HOUR, 15), 100, runs=frozenset({one.pk, other.pk}))
    told(one, range(NOON, NOON + HOUR, 15), 70, is_share=True)
    told(one, range(NOON, NOON + HOUR, 15), 3, "")  # cores of its pod's CPU
    assert used("tenant_id") == {}


def test_the_answer_has_only_the_tenants_asked_for(stage: Stage) -> None:
    mine, theirs = held(stage, NOON, NOON + HOUR), held(stage, NOON, NOON + HOUR, by=stage.cast.carol)
    told(mine, range(NOON, NOON + HOUR, 15), 10)
    told(theirs, range(NOON, NOON + HOUR, 15), 90, "GPU-1")
    assert used("tenant_id", where=Q(tenant=mine.tenant)) == {mine.tenant_id: pytest.approx(0.1)}
    answer = {}
    for actor, hours_used in ((stage.cast.alice, 0.1), (stage.cast.carol, 0.9), (stage.cast.admin, 1.0)):
        answer = report.as_json(report.read(actor, report.parse({}, NOW), NOW))
        assert answer["total"]["used_gpu_hours"] == pytest.approx(hours_used)
    assert {row["tenant"]: row["used_gpu_hours"] for row in answer["results"]} == {"demo": 0.1, "second": 0.9}


# --- Comparison with an oracle that knows every second


@st.composite
def lives(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a run, reports about its GPUs by second, and times of thinning: before some reports come, and after."""
    grain = draw(st.sampled_from([1, MINUTE]))
    length = draw(st.integers(1, 90 * MINUTE // grain)) * grain
    # First second, length, seconds between two reports, use in percent.
    stretch = (st.integers(0, length - 1), st.integers(1, 40 * MINUTE), st.sampled_from([5, 15, 60]))
    stretches = st.lists(st.tuples(*stretch, st.integers(0, 100)), max_size=3)
    return {
        "slack": 0 if grain == MINUTE else 2 * MINUTE,
        "begin": NOON + 11 * HOUR + draw(st.integers(0, 2 * HOUR // grain)) * grain,
        "length": length,
        "gpus": draw(st.lists(stretches, min_size=1, max_size=2)),
        "late": draw(st.sampled_from([1, 2])),  # every n-th report comes after the first thinning
        "thinned": (draw(st.integers(0, 40 * HOUR)), draw(st.integers(0, 40 * DAY))),
        # Number of summing runs: after each thinning, and while late figures wait for one.
        "summed": draw(st.tuples(*[st.integers(0, 2)] * 4)),
    }


def by_second(life: dict[str, Any]) -> list[dict[int, int]]:
    """Return use by second for each GPU."""
    begin, length = life["begin"], life["length"]
    return [
        {
            begin + second: use
            for first, long, every, use in stretches
            for second in range(first, min(first + long, length), every)
        }
        for stretches in life["gpus"]
    ]


def integral(samples: dict[int, int], begin: int, end: int) -> dict[date, float]:
    """Return busy seconds by day: each minute's mean, in proportion to the run's part of the minute."""
    minutes: defaultdict[int, list[int]] = defaultdict(list)
    for second, use in samples.items():
        minutes[second - second % MINUTE].append(use)
    found: defaultdict[date, float] = defaultdict(float)
    for minute, uses in minutes.items():
        there = min(end, minute + MINUTE) - max(begin, minute)
        found[at(minute).date()] += there * sum(uses) / len(uses) / 100
    return found


def check(stage: Stage, life: dict[str, Any]) -> None:
    for model in (LedgerEntry, Claim, Figure, Track, BusyDay):
        model.objects.all().delete()
    begin, end = life["begin"], life["begin"] + life["length"]
    samples = by_second(life)
    run = held(stage, begin, end, len(samples))
    expected: defaultdict[date, float] = defaultdict(float)
    for of_gpu in samples:
        for day, seconds in integral(of_gpu, begin, end).items():
            expected[day] += seconds
    rounding = life["length"] * len(samples) / 10_000
    soon, later = (end + seconds for seconds in life["thinned"])
    summed = life["summed"]
    tell_some(run, samples, life["late"], 0)
    thinning.thin(soon)
    sum_up(soon, summed[0])
    tell_some(run, samples, life["late"], 1)
    seconds_by_day()  # no more than was held, also with late figures beside their minutes
    sum_up(soon, summed[1])
    thinning.thin(soon)
    sum_up(soon, summed[2])
    assert seconds_by_day() == pytest.approx(expected, abs=rounding)
    thinning.thin(later)
    sum_up(later, summed[3])
    assert seconds_by_day() == pytest.approx(expected, abs=rounding + life["slack"] * len(samples))


def sum_up(now: float, times: int) -> None:
    for _time in range(times):
        busy.sum_up(now)


def seconds_by_day() -> dict[date, float]:
    allocated = hours(*EVERYTHING, ("day",), NOW)
    found = used_hours(*EVERYTHING, ("day",), NOW)
    assert all(amount <= allocated[key].allocated for key, amount in found.items())
    return {day: float(amount * HOUR) for (day,), amount in found.items()}


def tell_some(run: Claim, samples: list[dict[int, int]], parts: int, part: int) -> None:
    for gpu, of_gpu in enumerate(samples):
        of = TrackIdentity(run.pool.cluster_id, "gpu-1", f"GPU-{gpu}", runs=frozenset({run.pk}))
        numbered = enumerate(of_gpu.items())
        put([Sample(of, second, use) for number, (second, use) in numbered if number % parts == part])


@given(life=lives())
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_busy_time_is_the_integral_of_use_at_every_age(stage: Stage, life: dict[str, Any]) -> None:
    check(stage, life)


@pytest.mark.slow
@given(life=lives())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_busy_time_is_that_integral_in_many_more_lives(stage: Stage, life: dict[str, Any]) -> None:
    check(stage, life)


# --- Days with sums


MIDNIGHT = NOON + 12 * HOUR
TODAY, TOMORROW = at(NOON).date(), at(MIDNIGHT).date()


def days_done() -> set[date]:
    return {at(day * DAY).date() for day in BusyDay.objects.filter(run=None).values_list("day", flat=True)}


def test_a_day_that_is_over_is_summed_up_once_it_is_thinned_and_its_figures_are_not_read_again(
    stage: Stage,
) -> None:
    run = held(stage, MIDNIGHT - HOUR, MIDNIGHT + HOUR)
    told(run, range(MIDNIGHT - HOUR, MIDNIGHT + HOUR, 60), 50)
    busy.sum_up(MIDNIGHT + 2 * HOUR - 1)
    assert days_done() == set()
    busy.sum_up(MIDNIGHT + 2 * HOUR)
    assert days_done() == {TODAY}
    assert used("day") == {TODAY: pytest.approx(0.5), TOMORROW: pytest.approx(0.5)}
    Figure.objects.all().delete()
    assert used("day") == {TODAY: pytest.approx(0.5)}
    assert used_hours(Q(), TOMORROW, TOMORROW, ("day",), NOW) == {}
    assert used("tenant_id", where=Q(tenant=stage.cast.second)) == {}


def test_a_later_release_changes_no_sum(stage: Stage) -> None:
    run = run_of(stage, at(MIDNIGHT - HOUR))
    told(run, range(MIDNIGHT - HOUR, MIDNIGHT + HOUR, 60), 50)
    busy.sum_up(MIDNIGHT + 3 * HOUR)
    expected = {TODAY: pytest.approx(0.5), TOMORROW: pytest.approx(0.5)}
    assert used("day") == expected
    Claim.objects.filter(pk=run.pk).update(state=Claim.State.RELEASED, released_at=at(MIDNIGHT + 4 * HOUR))
    assert used("day") == expected
    busy.sum_up(MIDNIGHT + 2 * DAY)
    assert used("day") == expected


def test_figures_later_than_the_sum_of_their_day_count_once_thinned(stage: Stage) -> None:
    run = held(stage, NOON, NOON + HOUR)
    told(run, range(NOON, NOON + 30 * MINUTE, 60), 100)
    tasks.thin()
    assert TOMORROW in days_done()
    told(run, range(NOON + 30 * MINUTE, NOON + HOUR, 60), 100)
    assert used("day") == {TODAY: pytest.approx(0.5)}
    thinning.thin()
    assert days_done() == set()
    assert used("day") == {TODAY: pytest.approx(1)}
    tasks.thin()
    assert TOMORROW in days_done()
    assert used("day") == {TODAY: pytest.approx(1)}


def test_a_day_without_reports_is_not_read_again(stage: Stage) -> None:
    run = held(stage, NOON, MIDNIGHT + HOUR)
    busy.sum_up(NOON + 30 * DAY)
    assert days_done() == set(), "nothing was ever told"
    told(run, [NOON - 3 * DAY], 50)
    busy.sum_up(NOON)
    assert len(days_done()) == BusyDay.objects.count() == 3
    with CaptureQueriesContext(connection) as captured:
        busy.sum_up(NOON)
    assert not [query for query in captured if "monitoring_track" in query["sql"]]


def test_days_are_forgotten_as_the_figures_are() -> None:
    today = int(time.time()) // DAY
    BusyDay.objects.bulk_create(BusyDay(day=today - age) for age in (402, 401, 400, 399))
    thinning.thin(today * DAY)
    assert {today - day for day in BusyDay.objects.values_list("day", flat=True)} == {400, 399}


@pytest.mark.django_db(transaction=True)
def test_two_processes_sum_up_each_day_once() -> None:
    stage = Stage()
    run = held(stage, NOON, NOON + 2 * DAY)
    told(run, range(NOON, NOON + 2 * DAY, HOUR), 50)
    before = used("day")
    with crew(3) as threads:
        for done in threads.at_once([partial(on_its_own, partial(busy.sum_up, NOON + 3 * DAY))] * 3):
            done.result()
    busy.sum_up(NOON + 3 * DAY)
    assert sorted(BusyDay.objects.filter(run=None).values_list("day", flat=True)) == [
        NOON // DAY + number for number in range(3)
    ]
    assert BusyDay.objects.count() == 6
    assert used("day") == pytest.approx(before)


# --- Cost


def test_the_number_of_queries_does_not_grow(stage: Stage) -> None:
    counts = []
    for number in range(3):
        for _each in range(3):
            told(held(stage, NOON, NOON + HOUR), range(NOON, NOON + HOUR, 60), 50, f"GPU-{number}")
        with CaptureQueriesContext(connection) as captured:
            used("tenant_id")
        counts.append(len(captured))
    assert counts == [2, 2, 2]

"""Reports of programs: lines of output and the API, thinned series, pace and estimates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any
from uuid import UUID

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.template.loader import render_to_string
from django.test import RequestFactory, TestCase
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from accounts.errors import Invalid
from jobs.api.representation import job_json
from jobs.models import Attempt, Job, Part, Series
from jobs.progress import estimate, reporting, taking
from jobs.progress.lines import LONGEST_NAME, MOST_OF_A_LINE, parse
from jobs.progress.series import MOST_POINTS, Thinned
from jobs.runs.lifecycle import retry
from quotas import admission
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.clients import api, ask
from tests.shared.driving_jobs import RUNS, submitted
from workloads.logs import readers
from workloads.logs.readers import Line

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)

# --- lines


def test_a_line_reports_progress_step_and_values() -> None:
    report = parse("berth: progress=0.4 loss=1.2 step=17 val/acc=-3e-2")
    assert report is not None
    assert (report.progress, report.step, dict(report.values)) == (0.4, 17, {"loss": 1.2, "val/acc": -0.03})


@pytest.mark.parametrize(
    "line",
    ["INFO:root:berth: loss=1", "[default0]:berth: loss=1", "  berth: loss=1", "10%|# |\rberth: loss=1,"],
)
def test_loggers_and_progress_bars_may_stand_before_it(line: str) -> None:
    report = parse(line)
    assert report is not None
    assert dict(report.values) == {"loss": 1}


@pytest.mark.parametrize(
    "line",
    [
        "", "loss=1", "myberth: loss=1", "berth:", "berth: loss", "berth: loss=", "berth: =1", "berth: loss=nan",
        "berth: loss=inf", "berth: loss=1e999", "berth: loss=1_0", "berth: loss=٣", "berth: 1a=1", "berth: a\x00=1",
        "berth: progress=1.5", "berth: progress=-1", "berth: progress=40%", "berth: step=1.5", "berth: loss=0x10",
        "berth: " + "a" * 65 + "=1", "berth: loss=" + "1" * 50, "berth: loss=1\rdone",
    ],
)  # fmt: skip
def test_what_is_not_understood_reports_nothing(line: str) -> None:
    assert parse(line) is None


@given(st.binary(max_size=8000).map(lambda raw: raw.decode("utf-8", "replace")), st.booleans())
@example("berth: " + " ".join(f"n{number}={number}" for number in range(10_000)), False)
def test_any_line_is_read_into_a_bounded_report(text: str, is_marked: bool) -> None:
    report = parse(f"berth: {text}" if is_marked else text)
    if report is None:
        return
    assert len(report.values) <= MOST_OF_A_LINE
    assert all(0 < len(name) <= LONGEST_NAME and isfinite(value) for name, value in report.values.items())
    assert report.progress is None or 0 <= report.progress <= 1
    assert report.step is None or report.step >= 0


@given(
    st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}", fullmatch=True), st.floats(-1e30, 1e30))
)
def test_what_is_printed_is_read_again(values: dict[str, float]) -> None:
    values = {name: value for name, value in values.items() if name not in ("progress", "step")}
    report = parse("berth: " + " ".join(f"{name}={value!r}" for name, value in values.items()))
    assert (dict(report.values) if report else {}) == dict(list(values.items())[:MOST_OF_A_LINE])


# --- series


@given(st.lists(st.integers(0, 40), max_size=80))
def test_a_series_keeps_every_nth_point_and_never_too_many(batches: list[int]) -> None:
    thinned, total = Thinned(), 0
    for size in batches:
        thinned.add([[float(total + number), 0.5, 0.0] for number in range(size)])
        total += size
        assert len(thinned.points) <= MOST_POINTS
        assert [point[0] for point in thinned.points] == [float(at) for at in range(0, total, thinned.stride)]


# --- estimates


def pace(begun_with: float = 0.2, minutes: float = 10, run: str = "a") -> dict[str, Any]:
    since = (NOW - timedelta(minutes=minutes)).timestamp()
    return {"run": run, "since": since, "begun_with": begun_with, "at": NOW.timestamp()}


def test_the_pace_of_a_run_says_when_it_is_done() -> None:
    assert estimate.end_of_part(0.6, pace(), "a", NOW) == NOW + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("progress", "known", "run"),
    [(None, {}, "a"), (0.6, {}, "a"), (0.2, pace(), "a"), (0.6, pace(minutes=0), "a"), (0.6, pace(), "b")],
)
def test_nobody_knows_when_it_is_done_before_it_reported_enough(
    progress: float | None, known: dict[str, Any], run: str
) -> None:
    assert estimate.end_of_part(progress, known, run, NOW) is None


def test_an_estimate_that_has_passed_is_none() -> None:
    assert estimate.end_of_part(0.6, pace(), "a", NOW + timedelta(hours=1)) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 10**6), st.sampled_from("ab")), min_size=1))
def test_a_pace_belongs_to_the_newest_run_and_never_runs_backwards(
    reports: list[tuple[float, int, str]],
) -> None:
    known: dict[str, Any] = {}
    for progress, seconds, run in reports:
        known = estimate.paced(known, run, progress, NOW + timedelta(seconds=seconds))
        assert known["run"] == run
        assert known["begun_with"] <= progress
        assert known["at"] >= known["since"]
        end = estimate.end_of_part(progress, known, run, NOW)
        assert end is None or end >= NOW


def test_a_job_is_done_when_its_last_part_is() -> None:
    ends = [NOW + timedelta(hours=1), NOW + timedelta(hours=2)]
    assert estimate.end_of_job(0.5, ends, 0, NOW, NOW) == ends[1]
    assert estimate.end_of_job(0.5, [*ends, None], 0, NOW, NOW) is None
    started = NOW - timedelta(hours=1)
    assert estimate.end_of_job(0.25, ends, 3, started, NOW) == NOW + timedelta(hours=3)
    assert estimate.end_of_job(0, ends, 3, started, NOW) is None
    assert estimate.end_of_job(0.5, [], 3, started, NOW) is None


# --- rows


def said(job: UUID, text: str, run: UUID | None, *, at: datetime | None = None, **values: Any) -> Line:
    first: dict[str, Any] = {"holder_kind": "job", "index": 0, "attempt": 1, "at": at or timezone.now()}
    return Line(holder_id=job, run=run or job, text=text, **first | values)


def hear(*lines: Line) -> None:
    """Hand the lines on as the collector of logs does, and let it commit."""
    with TestCase.captureOnCommitCallbacks(execute=True):
        readers.tell(lines)


def running(cast: Cast, **changes: Any) -> tuple[Job, Part]:
    job = submitted(cast, ends=RUNS, **changes)
    admission.admit(job.pool_id)
    Part.objects.filter(job=job, phase="starting").update(phase="running")
    Job.objects.filter(pk=job.pk).update(phase="running")
    job.refresh_from_db()
    return job, job.parts.get(index=0)


@pytest.mark.django_db
def test_lines_become_progress_values_and_series(cast: Cast) -> None:
    job, part = running(cast)
    begun = timezone.now() - timedelta(minutes=10)
    lines = [
        said(job.pk, f"berth: progress={done} loss={1 - done} step={int(done * 100)}", part.run, at=at)
        for done, at in ((0.1, begun), (0.5, begun + timedelta(minutes=9)))
    ]
    hear(lines[0], said(job.pk, "anything else", part.run), lines[1])
    part.refresh_from_db()
    assert (part.progress, part.metrics) == (0.5, {"loss": 0.5})
    assert [point["step"] for point in reporting.reported(job, 0)["series"][0]["points"]] == [10, 50]
    shown = job_json(job, cast.alice)["progress"]
    assert (shown["fraction"], shown["metrics"]) == (0.5, {"loss": 0.5})
    end = datetime.fromisoformat(shown["eta"])
    assert timedelta(minutes=9) < end - timezone.now() < timedelta(minutes=11)
    claim = Claim.objects.get(holder_id=job.pk)
    assert claim.expected_end_at is not None
    assert abs(claim.expected_end_at - end) < timedelta(seconds=5)
    assert (claim.ends_at, claim.must_end_at) == (None, None)


@pytest.mark.django_db
def test_lines_of_others_and_of_earlier_runs_move_no_progress(cast: Cast) -> None:
    job, part = running(cast)
    hear(
        said(job.pk, "berth: progress=0.9", run=job.pk),
        said(job.pk, "berth: progress=0.9", part.run, holder_kind="workspace"),
        said(cast.pool.pk, "berth: progress=0.9", part.run),
        said(job.pk, "berth: progress=0.9", part.run, index=7),
    )
    part.refresh_from_db()
    assert part.progress is None


@pytest.mark.django_db
def test_a_job_has_a_bounded_number_of_names(cast: Cast) -> None:
    job, part = running(cast, completions=2)
    second = job.parts.get(index=1)
    for number in range(40):
        hear(said(job.pk, f"berth: name{number:02}={number}", part.run))
    hear(said(job.pk, "berth: other=1 name00=7", second.run, index=1))
    assert Series.objects.filter(part=part).count() == taking.MOST_NAMES
    assert list(Series.objects.filter(part=second).values_list("name", flat=True)) == ["name00"]


@pytest.mark.django_db
def test_progress_and_step_take_no_names_place(cast: Cast) -> None:
    job, part = running(cast)
    names = [f"z{number:02}" for number in range(taking.MOST_NAMES)]
    reporting.report(cast.alice, job, 0, {"progress": 0.5, "step": 7.0} | dict.fromkeys(names, 1.0))
    assert Series.objects.filter(part=part).count() == taking.MOST_NAMES
    part.refresh_from_db()
    reporting.refuse_faulty(part, {"progress": 0.6, names[0]: 2.0})
    with pytest.raises(Invalid):
        reporting.refuse_faulty(part, {"progress": 0.6, "more": 2.0})


@pytest.mark.django_db
def test_a_long_run_keeps_its_newest_point_and_few_old_ones(cast: Cast) -> None:
    job, part = running(cast)
    for first in range(0, 2000, 500):
        hear(*[said(job.pk, f"berth: loss={at}", part.run) for at in range(first, first + 500)])
    points = reporting.reported(job, 0)["series"][0]["points"]
    assert len(points) <= MOST_POINTS + 1
    assert (points[0]["step"], points[-1]["step"], points[-1]["value"]) == (0, 1999, 1999)


@pytest.mark.django_db
def test_a_retry_begins_without_what_was_reported(cast: Cast) -> None:
    job, part = running(cast)
    hear(said(job.pk, "berth: progress=0.5 loss=1", part.run))
    Attempt.objects.update(ended_at=timezone.now())
    admission.release(part.run, "done")  # type: ignore[arg-type]
    Part.objects.filter(job=job).update(phase="failed")
    Job.objects.filter(pk=job.pk).update(phase="failed", ended_at=timezone.now())
    assert retry(cast.alice, job)
    part.refresh_from_db()
    assert (part.progress, part.metrics, part.series.count()) == (None, {}, 0)


# --- API


@pytest.mark.django_db
def test_the_api_takes_values_of_a_part_that_runs(cast: Cast) -> None:
    job, _part = running(cast)
    path = f"jobs/{job.pk}/metrics/"
    script = api(cast.alice, "jobs")
    answer = ask(script, "POST", path, {"step": 3, "values": {"loss": 0.5, "progress": 0.25}})
    assert (answer.status_code, answer.json()["progress"], answer.json()["metrics"]) == (
        200,
        0.25,
        {"loss": 0.5},
    )
    assert ask(api(cast.victor), "GET", path).json()["series"][0]["points"][0]["step"] == 3
    assert ask(api(cast.alice, "read"), "POST", path, {"values": {"loss": 1}}).status_code == 403
    assert ask(api(cast.carol), "GET", path).status_code == 404
    assert ask(script, "GET", f"{path}?index=1").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        {}, {"values": {}}, {"values": {"loss": "nan"}}, {"values": {"loss": "inf"}}, {"values": {"lo ss": 1}},
        {"values": {"a" * 65: 1}}, {"values": {"progress": 2}}, {"values": {"loss": None}}, {"values": [1]},
        {"values": {"loss": 1}, "step": -1}, {"values": {"loss": 1}, "index": 2**40},
        {"values": {f"n{number}": number for number in range(33)}}, {"values": {"loss": 1}, "surprise": 1},
    ],
)  # fmt: skip
def test_values_that_are_none_are_refused(cast: Cast, body: dict[str, Any]) -> None:
    job, _part = running(cast)
    answer = ask(api(cast.alice), "POST", f"jobs/{job.pk}/metrics/", body)
    assert answer.status_code in (400, 422)
    assert Series.objects.count() == 0


@pytest.mark.django_db
def test_a_job_that_does_not_run_takes_none(cast: Cast) -> None:
    job = submitted(cast, ends=RUNS)
    answer = ask(api(cast.alice), "POST", f"jobs/{job.pk}/metrics/", {"values": {"loss": 1}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_running")


@pytest.mark.django_db
def test_the_fragment_has_a_bar_and_a_table_without_scripts(cast: Cast, rf: RequestFactory) -> None:
    job, part = running(cast)
    hear(said(job.pk, "berth: progress=0.5 loss=1.25", part.run))
    request = rf.get("/")
    request.user, request.session = cast.alice.user, SessionStore()
    html = render_to_string(
        "jobs/_progress.html", {"job": job, "shown": job_json(job, cast.alice), "request": request}
    )
    assert "50% done" in html
    assert '<th scope="row">loss</th>' in html
    assert "1.25" in html
    assert "style=" not in html

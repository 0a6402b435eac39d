"""Facts that an attempt keeps of its run: GPUs, their use, and the last lines of output for those who may read it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jobs.api.representation import job_json, jobs_json
from jobs.models import Attempt, Job
from jobs.runs import attempts
from jobs.runs.ends import LONGEST_TAIL, tail_of
from monitoring.figures.store import Sample, TrackIdentity, put
from tests.cast import Cast
from tests.shared.driving_jobs import PASSES, drive, in_phase, submitted
from tests.shared.driving_jobs import attempts as attempts_of


def ended(code: int, message: str | None = None) -> dict[str, Any]:
    terminated = {"exitCode": code} | ({"message": message} if message else {})
    status: dict[str, Any] = {"phase": "Failed" if code else "Succeeded", "startTime": "2026-11-27T12:00:00Z"}
    status["containerStatuses"] = [{"name": "job", "state": {"terminated": terminated}}]
    return {"metadata": {"name": "job", "uid": "a"}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("pods", "tail"),
    [
        ([], ""),
        ([ended(0, "fine")], ""),
        ([ended(1)], ""),
        ([ended(1, "out of\x00 tokens")], "out of tokens"),
        ([ended(0, "fine"), ended(137, "killed")], "killed"),
        ([ended(1, "x" * 10_000)], "x" * LONGEST_TAIL),
    ],
)
def test_the_last_lines_are_those_of_a_container_that_failed(pods: list[dict[str, Any]], tail: str) -> None:
    assert tail_of(pods) == tail


def told(job: Job, attempt: Attempt, use: float) -> None:
    identity = TrackIdentity(job.pool.cluster_id, "gpu-1", "GPU-a", runs=frozenset({attempt.run}))
    put([Sample(identity, int(time.time()) - 5, use)])


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(120)
def test_an_attempt_shows_its_gpus_while_it_runs_and_keeps_them(house: Cast) -> None:
    job = drive(submitted(house, ends=PASSES), in_phase("starting", "running"))
    (attempt,) = attempts_of(job)
    told(job, attempt, 80)
    (shown,) = job_json(job, house.bob)["attempts"]
    assert (shown["gpus"], shown["gpu_use_percent"]) == (["GPU-a"], 80.0)
    job = drive(job, in_phase("succeeded"))
    (attempt,) = attempts_of(job)
    assert (attempt.gpus, attempt.gpu_use_percent) == (["GPU-a"], 80.0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(120)
def test_who_may_not_read_the_output_sees_no_last_lines(house: Cast) -> None:
    job = drive(submitted(house, ends=PASSES), in_phase("starting", "running"))
    (attempt,) = attempts_of(job)
    attempts.note_last(attempt, [ended(1, "Traceback")])
    assert job_json(job, house.alice)["attempts"][0]["tail"] == "Traceback"
    assert job_json(job, house.bob)["attempts"][0]["tail"] is None
    assert [one["attempts"][0]["tail"] for one in jobs_json([job, job], house.alice)] == [None, None]

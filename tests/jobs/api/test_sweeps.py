"""Sweeps and notebooks in the API: points, the table of parts, and stopping the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.test import Client

from accounts.credentials import tokens
from jobs.models import Job, PartPhase, Phase
from jobs.runs import parts as parts_of_jobs
from tests.cast import Cast
from tests.shared.job_rows import make_job

pytestmark = pytest.mark.django_db

GRID = {"lr": [0.1, 0.01], "seed": [1, 2]}


@pytest.fixture
def bob(cast: Cast) -> Client:
    _token, secret = tokens.issue(cast.bob.user, "test", ["read", "jobs"], None, 1)
    return Client(headers={"Authorization": f"Bearer {secret}"})


def submit(bob: Client, **body: Any) -> Any:
    asked = {"tenant": "demo", "name": "train", "image": "jupyter", "flavor": "a100-1"} | body
    return bob.post("/api/v1/jobs/", asked, content_type="application/json")


def test_a_list_of_points_has_a_part_for_each(bob: Client) -> None:
    points = [{"lr": 0.1, "model": "a"}, {"lr": 0.2, "model": "b"}]
    made = submit(bob, command=["true"], sweep={"points": points, "parallelism": 2})
    assert made.status_code == 201
    assert made.json()["sweep"] == {"points": points, "parallelism": 2}
    assert [part.parameters for part in Job.objects.get().parts.all()] == points


@pytest.mark.parametrize(
    "sweep",
    [
        {"points": []},
        {"points": [{}]},
        {"points": [{"lr": 1}, {"b": 1}]},
        {"points": [{"lr": {"a": 1}}]},
        {"points": [{"a b": 1}]},
        {"points": [{"lr": "a\0b"}]},
        {"points": [{"lr": 1}] * 1001},
        {"points": [{"lr": 1}], "parameters": {"lr": [1]}},
        {"parallelism": 2},
    ],
)
def test_a_sweep_that_is_none_is_refused(bob: Client, sweep: Any) -> None:
    answer = submit(bob, command=["true"], sweep=sweep)
    assert answer.status_code == 400
    assert not Job.objects.exists()


def test_a_notebook_becomes_a_command_that_everybody_can_read(bob: Client) -> None:
    made = submit(bob, notebook="work/train.ipynb").json()
    assert made["notebook"] == "work/train.ipynb"
    job = bob.get(f"/api/v1/jobs/{made['id']}/manifest/").json()["items"][1]
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == "./work/train.ipynb"
    assert "nbconvert" in args[2]


def test_parts_are_sorted_by_what_they_reported(cast: Cast, bob: Client) -> None:
    job = make_job(cast, cast.bob, sweep=GRID)
    for index, loss in enumerate((0.4, 0.1, 0.2)):
        job.parts.filter(index=index).update(metrics={"loss": loss})
    address = f"/api/v1/jobs/{job.pk}/parts/"
    assert [one["index"] for one in bob.get(f"{address}?sort=metrics.loss").json()["results"]] == [1, 2, 0, 3]
    assert [one["index"] for one in bob.get(f"{address}?sort=-index").json()["results"]] == [3, 2, 1, 0]
    assert bob.get(f"{address}?sort=owner").status_code == 400


def test_parts_come_as_csv_in_the_same_order(cast: Cast, bob: Client) -> None:
    job = make_job(cast, cast.bob, sweep={"lr": [0.1], "name": ["=1+1", "b"]})
    job.parts.filter(index=1).update(metrics={"loss": 0.5}, phase=PartPhase.SUCCEEDED)
    answer = bob.get(f"/api/v1/jobs/{job.pk}/parts/?sort=-index&format=csv")
    assert b"".join(answer).decode().splitlines() == [
        "index,lr,name,phase,attempts,failures,loss",
        "1,0.1,b,succeeded,0,0,0.5",
        "0,0.1,'=1+1,waiting,0,0,",
    ]


def test_the_rest_is_stopped_and_the_best_goes_on(cast: Cast, bob: Client) -> None:
    job = make_job(cast, cast.bob, sweep=GRID, parallelism=4)
    answer = bob.post(f"/api/v1/jobs/{job.pk}/stop-rest/", {"keep": [2]}, content_type="application/json")
    assert answer.status_code == 202
    assert list(job.parts.values_list("phase", flat=True)) == [
        "cancelled",
        "cancelled",
        "waiting",
        "cancelled",
    ]
    assert answer.json()["phase"] == Phase.WAITING
    again = bob.post(f"/api/v1/jobs/{job.pk}/stop-rest/", {"keep": [2]}, content_type="application/json")
    assert again.status_code == 200
    assert job.events.last().code == "rest_stopped_but"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("phases", "ends"),
    [
        ({"succeeded": 1, "cancelled": 3}, "succeeded"),
        ({"cancelled": 4}, "cancelled"),
        ({"succeeded": 1, "cancelled": 2, "failed": 1}, "failed"),
    ],
)
def test_a_sweep_whose_rest_was_stopped_ends_as_what_was_kept(phases: Any, ends: str) -> None:
    assert parts_of_jobs.phase_of("done", Counter(phases)) == ends
    assert parts_of_jobs.phase_of("cancelled", Counter(phases)) == "cancelled"

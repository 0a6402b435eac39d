"""Examples of jobs."""

from __future__ import annotations

from typing import Any

from jobs.models import Job
from tests.portal.parity.bodies import JOB
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.job_rows import end_in_rows, make_job

VERB = "jobs/<uuid:id>/<str:verb>/"


@example("POST jobs/", "jobs/new/")
def a_job(scene: Scene) -> None:
    made = scene.alice.api("POST jobs/", JOB)
    assert scene.alice.get(f"jobs/{made['id']}/")["command"] == ["true"]


@example("POST estimate/", "launch/answer/", "jobs/new/answer/")
def when_it_would_start(scene: Scene) -> None:
    asked = {name: value for name, value in JOB.items() if name != "command"}
    assert scene.alice.api("POST estimate/", asked)["starts_now"]
    assert scene.alice.list("jobs/") == []


@example("POST jobs/<uuid:id>/cancel/", "jobs/bulk/", VERB, "jobs.job cancel")
def a_job_is_cancelled(scene: Scene) -> None:
    job = make_job(scene.cast, scene.cast.alice)
    scene.alice.api(f"POST {at(job)}cancel/")
    assert shown(scene, job)["phase"] == "cancelled"


@example("DELETE jobs/<uuid:id>/", "jobs/bulk/", VERB, "jobs.job remove")
def a_job_is_deleted(scene: Scene) -> None:
    job = end_in_rows(make_job(scene.cast, scene.cast.alice))
    scene.alice.api(f"DELETE {at(job)}")
    job.refresh_from_db()
    assert job.desired == "deleted"


@example("POST jobs/<uuid:id>/retry/", VERB)
def a_job_runs_again(scene: Scene) -> None:
    job = end_in_rows(make_job(scene.cast, scene.cast.alice))
    scene.alice.api(f"POST {at(job)}retry/")
    assert shown(scene, job)["phase"] == "waiting"


@example("POST jobs/<uuid:id>/retry-failed/", VERB)
def what_failed_of_a_job_runs_again(scene: Scene) -> None:
    job = end_in_rows(make_job(scene.cast, scene.cast.alice, completions=2))
    job.parts.filter(index=1).update(phase="succeeded")
    scene.alice.api(f"POST {at(job)}retry-failed/")
    phases = [part["phase"] for part in scene.alice.list(f"{at(job)}parts/?sort=index")]
    assert phases == ["waiting", "succeeded"]


@example("POST jobs/<uuid:id>/duplicate/", VERB)
def a_job_is_duplicated(scene: Scene) -> None:
    job = make_job(scene.cast, scene.cast.alice)
    scene.alice.api(f"POST {at(job)}duplicate/")
    assert [one["name"] for one in scene.alice.list("jobs/")] == ["train", "train"]


@example("POST jobs/<uuid:id>/stop-rest/", "jobs/<uuid:id>/stop-rest/")
def the_rest_of_a_sweep_is_stopped(scene: Scene) -> None:
    job = make_job(scene.cast, scene.cast.alice, completions=3, parallelism=3)
    scene.alice.api(f"POST {at(job)}stop-rest/", {"keep": [1]})
    phases = [part["phase"] for part in scene.alice.list(f"{at(job)}parts/?sort=index")]
    assert phases == ["cancelled", "waiting", "cancelled"]


def at(job: Job) -> str:
    return f"jobs/{job.pk}/"


def shown(scene: Scene, job: Job) -> Any:
    return scene.alice.get(at(job))

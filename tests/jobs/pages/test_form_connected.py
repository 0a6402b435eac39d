"""Form of a new job: several nodes, the jobs before it, and data. It makes the job that the API would."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.test import Client

from accounts.models import Scope
from jobs.api.representation import job_json
from jobs.duplicate import duplicate
from jobs.models import Attempt, Job, Phase
from storage.models import Volume
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.datasets import dataset
from tests.shared.job_rows import end_in_rows, make_job

from .test_form import GOOD, faulty

pytestmark = pytest.mark.django_db

SAME = ("distributed", "checkpoints", "writes", "metrics", "volumes")
RANKS = {"framework": "ranks", "nodes": "1", "processes_per_node": "4"}


@pytest.fixture
def data(cast: Cast) -> Volume:
    return dataset(cast, "data", owner=cast.bob.user)


def posted(bob: Client, **changes: Any) -> Job:
    answer = bob.post("/jobs/new/", GOOD | changes)
    assert answer.status_code == 302, answer.context["form"].errors
    return Job.objects.latest("created_at")


def told(cast: Cast, job: Job) -> dict[str, Any]:
    shown = job_json(job, cast.bob)
    afters = [(one["job"], one["on"]) for one in shown["after"]]
    return {name: shown[name] for name in SAME} | {"after": afters}


def by_api(cast: Cast, bob: Client, **changes: Any) -> Job:
    """Send what the form shows as a curl command."""
    command = bob.post("/jobs/new/answer/", GOOD | changes).context["curl"]
    body = json.loads(command.partition("-d '")[2].rpartition("'")[0].replace("'\"'\"'", "'"))
    answer = ask(script(cast.bob, Scope.JOBS), "POST", "jobs/", body)
    assert answer.status_code == 201, answer.json()
    return Job.objects.get(pk=answer.json()["id"])


def test_each_field_makes_the_job_that_the_api_would(cast: Cast, bob: Client, data: Volume) -> None:
    first = make_job(cast, cast.alice, "first")
    asked = RANKS | {
        "checkpoints": str(data.pk), "writes": str(data.pk), "after": [str(first.pk)], "after_on": "end",
        "metrics_port": "9100", "metrics_path": "/m",
    }  # fmt: skip
    shown = told(cast, posted(bob, **asked))
    assert shown["distributed"] == {"nodes": 1, "processes_per_node": 4, "framework": "ranks"}
    assert shown["checkpoints"] == {"volume": str(data.pk)}
    assert (shown["writes"]["volume"], shown["metrics"]) == (str(data.pk), {"port": 9100, "path": "/m"})
    assert shown["after"] == [(str(first.pk), "end")]
    assert told(cast, by_api(cast, bob, **asked)) == shown


def test_without_them_it_is_a_plain_job(cast: Cast, bob: Client) -> None:
    shown = told(cast, posted(bob, framework="", nodes="1", processes_per_node="1", after_on="success"))
    assert {name: shown[name] for name in ("distributed", "checkpoints", "writes", "metrics", "after")} == {
        "distributed": None, "checkpoints": None, "writes": None, "metrics": None, "after": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"nodes": "2"}, {"framework"}),
        ({"processes_per_node": "2"}, {"framework"}),
        ({"framework": "mpi"}, {"framework"}),
        ({**RANKS, "nodes": "65", "processes_per_node": "0"}, {"nodes", "processes_per_node"}),
        ({**RANKS, "env": "RANK=1"}, {"env"}),
        ({"checkpoints": "{data}"}, {"checkpoints"}),  # not mounted
        ({"checkpoints": "{data}", "volumes": "{data}:r"}, {"checkpoints"}),
        ({"writes": "{data}", "volumes": "{data}:r"}, {"volumes"}),
        ({"checkpoints": str(uuid4())}, {"checkpoints"}),
        ({"writes": str(uuid4())}, {"writes"}),
        ({"writes": "{hers}"}, {"writes"}),
        ({"after": [str(uuid4())]}, {"after"}),
        ({"after": ["nonsense"]}, {"after"}),
        ({"after": ["{elsewhere}"]}, {"after"}),
        ({"after": ["{failed}"]}, {"after"}),
        ({"after_on": "never"}, {"after_on"}),
        ({"metrics_port": "80"}, {"metrics_port"}),
        ({"metrics_port": "9100", "metrics_path": "m"}, {"metrics_path"}),
        ({"metrics_path": "/m"}, {"metrics_port"}),
    ],
)
def test_faults_stand_beside_their_fields(
    cast: Cast, bob: Client, data: Volume, changes: dict[str, Any], fields: set[str]
) -> None:
    ids = {
        "data": data.pk,
        "hers": dataset(cast, "hers", shared="write").pk,
        "elsewhere": make_job(cast, cast.carol).pk,
        "failed": end_in_rows(make_job(cast, cast.bob)).pk,
    }
    before = Job.objects.count()
    sent = {
        name: [one.format(**ids) for one in value] if isinstance(value, list) else value.format(**ids)
        for name, value in changes.items()
    }
    assert faulty(bob.post("/jobs/new/", GOOD | sent)) == fields
    assert Job.objects.count() == before


def test_the_estimate_counts_all_nodes(cast: Cast, bob: Client) -> None:
    sent = RANKS | {"nodes": "64"}
    alone = bob.post("/jobs/new/answer/", GOOD | RANKS).context["forecast"]
    several = bob.post("/jobs/new/answer/", GOOD | sent).context["forecast"]
    assert alone["admissible"]
    assert not several["admissible"]
    assert faulty(bob.post("/jobs/new/", GOOD | sent)) == {"flavor"}  # its size, so many times


def test_there_is_no_estimate_before_the_jobs_before_it_are_over(cast: Cast, bob: Client) -> None:
    over, waiting = end_in_rows(make_job(cast, cast.bob), Phase.SUCCEEDED), make_job(cast, cast.alice)
    for first, waits_for in (([over], 0), ([over, waiting], 1)):
        answer = bob.post("/jobs/new/answer/", GOOD | {"after": [str(job.pk) for job in first]})
        assert answer.context["waits_for"] == waits_for
        assert ("Starts now" in answer.content.decode()) == (not waits_for)
    huge = {"nodes": "64", "after": [str(waiting.pk)]}
    answer = bob.post("/jobs/new/answer/", GOOD | RANKS | huge)
    assert answer.context["waits_for"] == 0
    assert "This cannot start" in answer.content.decode()


def offered(page: Any, name: str) -> list[str]:
    return [str(value) for value, _label in page.context["form"].fields[name].choices]


def test_jobs_to_wait_for_are_those_that_may_still_succeed(cast: Cast, bob: Client) -> None:
    waiting = make_job(cast, cast.alice)
    succeeded = end_in_rows(make_job(cast, cast.bob), Phase.SUCCEEDED)
    failed = end_in_rows(make_job(cast, cast.bob))
    make_job(cast, cast.carol)
    assert offered(bob.get("/jobs/new/"), "after") == [str(succeeded.pk), str(waiting.pk)]
    page = bob.get(f"/jobs/new/?after={failed.pk}")
    assert page.context["form"]["after"].value() == [str(failed.pk)]
    assert (page.context["notes"], page.context["form"].opens_order) == ([], True)


def test_a_foreign_job_in_a_link_is_not_offered(cast: Cast, bob: Client) -> None:
    pages = [bob.get(f"/jobs/new/?after={pk}") for pk in (make_job(cast, cast.carol).pk, uuid4(), "x")]
    assert [page.context["form"]["after"].value() for page in pages] == [[], [], []]
    assert [len(page.context["notes"]) for page in pages] == [1, 1, 1]


def test_datasets_to_write_are_those_that_the_person_may_publish(
    cast: Cast, bob: Client, data: Volume
) -> None:
    hers = dataset(cast, "hers", shared="write")
    assert offered(bob.get("/jobs/new/"), "writes") == ["", str(data.pk)]
    bob.force_login(cast.alice.user)  # an owner of the tenant
    assert offered(bob.get("/jobs/new/"), "writes") == ["", str(data.pk), str(hers.pk)]


@pytest.mark.slow
def test_the_latest_version_can_be_one_that_a_job_before_it_will_publish(
    cast: Cast, bob: Client, data: Volume
) -> None:
    latest = f"{data.pk}:v"
    assert latest not in offered(bob.get("/jobs/new/"), "volumes")
    writer = make_job(cast, cast.bob, "writer", writes=data.pk)
    assert latest in offered(bob.get("/jobs/new/"), "volumes")
    asked = {"volumes": latest, "after": [str(writer.pk)]}
    assert "fault" not in bob.post("/jobs/new/answer/", GOOD | asked).context
    shown = told(cast, posted(bob, **asked))
    assert [(one["volume"], one["version"]) for one in shown["volumes"]] == [(str(data.pk), "latest")]
    assert faulty(bob.post("/jobs/new/", GOOD | {"volumes": latest})) == {"volumes"}


def test_a_link_and_a_duplicate_keep_them(cast: Cast, bob: Client, data: Volume) -> None:
    asked = RANKS | {
        "checkpoints": str(data.pk), "writes": str(data.pk), "volumes": f"{data.pk}:w", "metrics_port": "9100"
    }  # fmt: skip
    link = bob.post("/jobs/new/answer/", GOOD | asked).context["link"]
    assert {name: parse_qs(urlsplit(link).query)[name] for name in asked} == {
        name: [value] for name, value in asked.items()
    }
    job = posted(bob, **asked)
    for address in (link, f"/jobs/new/?again={job.pk}"):
        form = bob.get(address).context["form"]
        shown = {name: form[name].value() for name in asked}
        assert {name: str(shown[name]) for name in asked if name != "volumes"} == {
            name: value for name, value in asked.items() if name != "volumes"
        }
        assert shown["volumes"] == [asked["volumes"]]
        assert form.opens_nodes and form.opens_order
    same = (*SAME[:4],)
    again = told(cast, duplicate(cast.bob, job))
    assert {name: again[name] for name in same} == {name: told(cast, job)[name] for name in same}


def test_the_page_of_a_job_shows_the_ranks_of_an_attempt_on_several_nodes(cast: Cast, bob: Client) -> None:
    job = end_in_rows(make_job(cast, cast.bob), attempts=2)
    member = {"uid": "u", "ended": True, "out_code": ""}
    members = {
        "0": member | {"node": "gpu-1", "exit_code": 0, "reason": "Completed"},
        "1": member | {"node": "gpu-2", "exit_code": 137, "reason": "OOMKilled"},
    }
    Attempt.objects.filter(part__job=job, number=2).update(members=members)
    Attempt.objects.filter(part__job=job, number=1).update(members={"0": members["0"]})
    page = bob.get(f"/jobs/{job.pk}/").content.decode()
    rows = [page.partition(f'data-rank="0-2-{rank}"')[2].partition("</tr>")[0] for rank in (0, 1)]
    assert ["gpu-2" in row and "137" in row and "OOMKilled" in row for row in rows] == [False, True]
    assert 'data-rank="0-1-' not in page

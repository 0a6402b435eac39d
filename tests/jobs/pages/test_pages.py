"""Pages of jobs: the list with its filters and bulk actions, and a job's own pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Job, PartPhase, Phase
from tests.cast import Cast
from tests.shared.job_rows import end_in_rows, make_job

pytestmark = pytest.mark.django_db


def names(answer: Any) -> list[str]:
    return [job.name for job, _shown in answer.context["rows"]]


def test_the_list_shows_own_jobs_and_on_request_everybodys(cast: Cast, bob: Client) -> None:
    make_job(cast, cast.bob, "mine")
    make_job(cast, cast.alice, "hers")
    make_job(cast, cast.carol, "elsewhere")
    assert names(bob.get("/jobs/")) == ["mine"]
    assert names(bob.get("/jobs/?show=everyone")) == ["hers", "mine"]
    assert names(bob.get("/jobs/?show=everyone&owner=alice")) == ["hers"]


def test_the_list_is_filtered_and_sorted(cast: Cast, bob: Client) -> None:
    for name in ("b", "c", "a"):
        make_job(cast, cast.bob, name)
    end_in_rows(Job.objects.get(name="c"))
    assert names(bob.get("/jobs/?sort=name")) == ["a", "b", "c"]
    assert names(bob.get("/jobs/?phase=failed")) == ["c"]
    assert names(bob.get("/jobs/?search=B")) == ["b"]
    assert bob.get("/jobs/?phase=nonsense").status_code == 422
    assert bob.get("/jobs/?cursor=forged").status_code == 302


def test_pages_of_the_list_follow_each_other(cast: Cast, bob: Client) -> None:
    for name in ("a", "b", "c"):
        make_job(cast, cast.bob, name)
    first = bob.get("/jobs/?sort=name&limit=2")
    assert names(first) == ["a", "b"]
    make_job(cast, cast.bob, "a2")
    assert names(bob.get(f"/jobs/?sort=name&limit=2&cursor={first.context['following']}")) == ["c"]


def test_several_jobs_are_cancelled_after_a_question(cast: Cast, bob: Client) -> None:
    one, other = make_job(cast, cast.bob, "one"), make_job(cast, cast.bob, "other")
    asked = {"verb": "cancel", "chosen": [str(one.pk), str(other.pk)], "next": "/jobs/"}
    answer = bob.post("/jobs/bulk/", asked)
    assert answer.status_code == 200
    assert set(answer.context["rows"]) == {one, other}
    assert set(Job.objects.values_list("phase", flat=True)) == {"waiting"}
    answer = bob.post("/jobs/bulk/", asked | {"sure": "1"})
    assert answer.status_code == 302
    assert set(Job.objects.values_list("phase", flat=True)) == {"cancelled"}


def test_a_bulk_action_leaves_jobs_of_others_alone(cast: Cast, bob: Client) -> None:
    hers, elsewhere = make_job(cast, cast.alice), make_job(cast, cast.carol)
    asked = {"verb": "delete", "chosen": [str(hers.pk), str(elsewhere.pk), "nonsense"], "sure": "1"}
    assert bob.post("/jobs/bulk/", asked).status_code == 302
    assert set(Job.objects.values_list("desired", flat=True)) == {"done"}


def test_what_failed_is_retried_at_once(cast: Cast, bob: Client) -> None:
    job = end_in_rows(make_job(cast, cast.bob))
    bob.post("/jobs/bulk/", {"verb": "retry-failed", "chosen": [str(job.pk)]})
    job.refresh_from_db()
    assert job.phase == Phase.WAITING


def test_a_jobs_page_has_its_attempts_newest_first(cast: Cast, bob: Client) -> None:
    job = make_job(cast, cast.bob)
    end_in_rows(job, attempts=2)
    answer = bob.get(f"/jobs/{job.pk}/")
    assert [one["number"] for one in answer.context["attempts"]] == [2, 1]
    assert {name for name, may in answer.context["may"].items() if may} == {"retry", "delete", "duplicate"}


@pytest.mark.parametrize("path", ["", "activity/", "settings/"])
@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED])
def test_each_tab_shows_each_phase(cast: Cast, bob: Client, path: str, phase: Phase) -> None:
    job = make_job(cast, cast.bob, completions=2)
    if phase != Phase.WAITING:
        end_in_rows(job, phase)
    answer = bob.get(f"/jobs/{job.pk}/{path}")
    assert answer.status_code == 200
    assert "s3cret-value" not in answer.content.decode()


def test_command_and_environment_are_shown_to_the_owner_alone(cast: Cast, client: Client) -> None:
    job = make_job(cast, cast.bob, command=["echo", "private thing"])
    for actor, sees in ((cast.bob, True), (cast.victor, False)):
        client.force_login(actor.user)
        page = client.get(f"/jobs/{job.pk}/settings/").content.decode()
        assert ("private thing" in page, "GREETING" in page) == (sees, sees)


def test_cancelling_is_asked_about_first(cast: Cast, bob: Client) -> None:
    job = make_job(cast, cast.bob)
    assert bob.get(f"/jobs/{job.pk}/cancel/").status_code == 200
    assert bob.post(f"/jobs/{job.pk}/cancel/").status_code == 302
    job.refresh_from_db()
    assert job.phase == Phase.CANCELLED
    assert job.parts.get().phase == PartPhase.CANCELLED
    assert bob.get(f"/jobs/{job.pk}/cancel/").status_code == 302  # nothing is left to ask about

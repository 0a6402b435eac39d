"""Admin pages of jobs: a list with filters, what cancelling and deleting would do, and links from other pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Job
from quotas import admission
from quotas.models import Claim
from tests.admin_forms import confirm, preview, text_of
from tests.cast import Cast
from tests.shared.counted import queries
from tests.shared.driving_jobs import submitted

pytestmark = pytest.mark.django_db

JOBS = "/admin/jobs/job/"


@pytest.fixture
def admin(cast: Cast, client: Client) -> Client:
    client.force_login(cast.admin.user)
    return client


def running(cast: Cast, name: str = "train", **changes: Any) -> Job:
    job = submitted(cast, name, **({"completions": 3, "parallelism": 2} | changes))
    admission.admit(job.pool_id)
    return Job.objects.get(pk=job.pk)


def test_the_list_is_filtered_and_costs_the_same_for_many(cast: Cast, admin: Client) -> None:
    running(cast, "one")
    few = queries(lambda: admin.get(JOBS))
    for number in range(4):
        submitted(cast, f"more-{number}")
    assert queries(lambda: admin.get(JOBS)) == few
    page = text_of(admin.get(f"{JOBS}?phase__exact=starting"))
    assert ">one<" in page and "more-1" not in page


def test_a_job_is_cancelled_after_a_preview_of_what_ends(cast: Cast, admin: Client) -> None:
    job = running(cast)
    shown = preview(admin, JOBS, "cancel", job)
    assert "2 parts of it end." in text_of(shown) and "1 part does not start." in text_of(shown)
    assert Job.objects.get().phase == "starting"
    confirm(admin, JOBS, shown)
    job.refresh_from_db()
    assert (job.desired, job.phase) == ("cancelled", "cancelling")
    assert job.events.filter(code="cancel_requested", data__by="admin").exists()
    assert "It is over, or about to be." in text_of(preview(admin, JOBS, "cancel", job))


def test_a_job_is_deleted_after_a_preview(cast: Cast, admin: Client) -> None:
    job = running(cast)
    confirm(admin, JOBS, preview(admin, JOBS, "remove", job))
    job.refresh_from_db()
    assert job.desired == "deleted"
    assert "It is deleted already." in text_of(preview(admin, JOBS, "remove", job))


def test_the_facts_of_a_job_are_read_only_and_lead_to_its_page(cast: Cast, admin: Client) -> None:
    job = running(cast)
    page = text_of(admin.get(f"{JOBS}{job.pk}/change/"))
    assert f'href="/jobs/{job.pk}/"' in page
    assert 'name="phase"' not in page and 'name="_save"' not in page
    assert admin.post(f"{JOBS}{job.pk}/change/", {"name": "other"}).status_code == 403
    assert admin.get(f"{JOBS}add/").status_code == 403


def test_pages_of_claims_lead_to_the_job(cast: Cast, admin: Client, client: Client) -> None:
    job = running(cast)
    claim = Claim.objects.filter(holder_id=job.pk).first()
    assert claim is not None
    assert f'href="/jobs/{job.pk}/"' in text_of(admin.get(f"/admin/quotas/claim/{claim.pk}/change/"))
    assert f'href="/jobs/{job.pk}/"' in text_of(client.get("/gpus/"))
    submitted(cast, "waits", completions=9, parallelism=9)
    waits = Job.objects.get(name="waits")
    assert f'href="/jobs/{waits.pk}/"' in text_of(client.get("/gpus/"))


def test_who_has_jobs_is_not_deleted_and_sees_them_named_before_a_deactivation(
    cast: Cast, admin: Client
) -> None:
    running(cast)
    people = "/admin/accounts/user/"
    shown = text_of(preview(admin, people, "deactivate", cast.alice.user))
    assert "train in Demo" in shown
    assert "train" in text_of(admin.get(f"{people}{cast.alice.user.pk}/change/"))
    answer = admin.post(f"{people}{cast.alice.user.pk}/delete/", {"post": "yes"}, follow=True)
    assert answer.status_code in (200, 403)
    cast.alice.user.refresh_from_db()
    tenants = "/admin/accounts/tenant/"
    admin.post(f"{tenants}{cast.demo.pk}/delete/", {"post": "yes"}, follow=True)
    cast.demo.refresh_from_db()


def test_an_image_or_size_that_jobs_use_is_kept(cast: Cast, admin: Client) -> None:
    job = running(cast)
    for path, row in (("/admin/workloads/image/", job.image), ("/admin/quotas/flavor/", cast.flavor)):
        assert '<td class="field-used_by">1</td>' in text_of(admin.get(path))
        admin.post(f"{path}{row.pk}/delete/", {"post": "yes"}, follow=True)
        row.refresh_from_db()

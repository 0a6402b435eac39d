"""Drift of objects of jobs: an attempt's are known; what no row wants is reported, and an admin alone removes it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from accounts.errors import NotAllowed
from clusters.api import Api
from jobs.models import Attempt, Job
from jobs.runs import lifecycle
from monitoring.drift import actions, looks, words
from monitoring.models import Finding
from tests.cast import Cast
from tests.monitoring.drift.stage import finding, look_for_a_while, planted
from tests.shared.driving_jobs import RUNS, attempts, drive, in_phase, submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def of_a_job(job: str, namespace: str, kind: str, name: str) -> dict[str, Any]:
    body = planted(kind, namespace, name)
    labels = body["metadata"]["labels"]
    del labels["berth.dev/workspace"]
    return body | {"metadata": body["metadata"] | {"labels": labels | {"berth.dev/job": job}}}


def found_in(house: Cast) -> list[tuple[str, str]]:
    """Return the findings in the namespace of this test: others are left over there by other tests."""
    look_for_a_while(house.cluster)
    rows = Finding.objects.open().filter(namespace=house.demo.namespace)
    return list(rows.values_list("kind", "name"))


@pytest.mark.slow
def test_the_objects_of_a_running_job_and_of_one_that_just_ended_are_no_finding(house: Cast) -> None:
    job = drive(submitted(house, ends=RUNS, secret_env={"KEY": "hush"}), in_phase("running"))
    assert found_in(house) == []
    assert lifecycle.cancel(house.alice, job)
    drive(job, in_phase("cancelled"))
    assert found_in(house) == []


def test_an_object_of_a_job_that_no_row_wants_is_removed_by_an_admin_alone(house: Cast, api: Api) -> None:
    api_needs_namespace(house)
    run, namespace = uuid4(), house.demo.namespace
    api.create(of_a_job(str(uuid4()), namespace, "ConfigMap", f"job-{run}") | {"data": {}})
    assert ("unwanted", "ConfigMap", f"job-{run}") in look_for_a_while(house.cluster)
    found = finding("ConfigMap", f"job-{run}")
    with pytest.raises(NotAllowed):
        actions.delete(house.alice, found)
    assert api.get("ConfigMap", namespace, f"job-{run}") is not None
    assert actions.delete(house.admin, found)
    assert api.get("ConfigMap", namespace, f"job-{run}") is None


def api_needs_namespace(house: Cast) -> Job:
    return drive(submitted(house, ends=RUNS), in_phase("running"))


def test_what_is_left_of_an_attempt_long_after_its_end_is_told_with_its_job(house: Cast) -> None:
    job = drive(submitted(house), in_phase("succeeded"))
    Attempt.objects.update(ended_at="2026-01-01T00:00:00Z")
    assert ("unwanted", "Job", attempts(job)[0].object_name) in look_for_a_while(house.cluster)
    assert finding("Job").job == job
    assert job.name in words.whose(finding("Job"))


def test_a_network_policy_of_one_job_may_be_deleted_though_tenants_have_one_too(
    house: Cast, api: Api
) -> None:
    api_needs_namespace(house)
    name = f"job-{uuid4()}"
    body = of_a_job(str(uuid4()), house.demo.namespace, "NetworkPolicy", name)
    api.create(body | {"apiVersion": "networking.k8s.io/v1", "spec": {"podSelector": {}}})
    look_for_a_while(house.cluster)
    assert words.why_not_delete(finding("NetworkPolicy", name)) == ""


def test_a_survey_leaves_the_pods_of_jobs_to_their_looks(house: Cast, api: Api) -> None:
    """A deleted pod that has ended keeps its finalizer until its job's look has seen it."""
    job = drive(submitted(house, ends=RUNS), in_phase("running"))
    run = {"berth.dev/run": str(attempts(job)[0].run)}
    (pod,) = api.list("Pod", namespace=house.demo.namespace, labels=run)
    api.delete("Pod", house.demo.namespace, pod["metadata"]["name"], grace_seconds=0)
    looks.look(house.cluster.pk)
    (pod,) = api.list("Pod", namespace=house.demo.namespace, labels=run)
    assert "berth.dev/end-seen" in pod["metadata"]["finalizers"]
    drive(job, lambda row: len(attempts(row)) == 2)

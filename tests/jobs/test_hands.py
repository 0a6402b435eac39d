"""Jobs whose objects somebody changed by hand, and pods that were ended by others than their program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clusters.api import Api
from devcluster.testing.kube import Kube
from jobs.models import Job
from jobs.runs import attempts as writing
from jobs.runs import lifecycle
from quotas import admission
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.driving_jobs import RUNS, attempts, drive, held, in_phase, submitted, told
from workloads.pods.troubles import explain_trouble

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def running(house: Cast, **changes: Any) -> Job:
    return drive(submitted(house, ends=RUNS, **{"retries": 0} | changes), in_phase("running"))


def runs_again(job: Job) -> bool:
    return len(attempts(job)) == 2 and job.phase == "running"


def pod_of(job: Job, api: Api) -> dict[str, Any]:
    run = {"berth.dev/run": str(attempts(job)[-1].run)}
    (pod,) = api.list("Pod", namespace=job.tenant.namespace, labels=run)
    return pod


def is_free_of_retries(job: Job) -> None:
    first, second = attempts(job)
    assert (first.counted, second.part.failures, held(job)) == (False, 0, 1)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_a_batch_job_that_is_deleted_by_hand_costs_no_retry(house: Cast, api: Api, propagation: str) -> None:
    job = running(house)
    api.delete("Job", job.tenant.namespace, attempts(job)[0].object_name, propagation=propagation)
    if propagation == "Orphan":  # its pod runs on, and so does the attempt
        job = drive(job, in_phase("running"))
        assert lifecycle.cancel(house.alice, job)
        job = drive(job, in_phase("cancelled"))
        assert held(job) == 0
        return
    is_free_of_retries(drive(job, runs_again))


@pytest.mark.slow
def test_a_batch_job_that_is_suspended_by_hand_costs_no_retry(house: Cast, api: Api) -> None:
    job = running(house)
    name = attempts(job)[0].object_name
    api.merge_patch("Job", job.tenant.namespace, name, {"spec": {"suspend": True}})
    is_free_of_retries(drive(job, runs_again))


@pytest.mark.slow
def test_a_secret_that_is_deleted_by_hand_is_made_again_for_the_next_attempt(house: Cast, api: Api) -> None:
    job = running(house)
    namespace, name = job.tenant.namespace, job.object_name
    api.delete("Secret", namespace, name)
    job = drive(job, in_phase("running"))
    pod = pod_of(job, api)
    api.delete("Pod", namespace, pod["metadata"]["name"])
    job = drive(job, runs_again)
    assert api.get("Secret", namespace, name) is not None


@pytest.mark.slow
def test_an_eviction_costs_no_retry(house: Cast, api: Api, played_cluster: Path) -> None:
    job = running(house)
    pod = pod_of(job, api)["metadata"]
    wish = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["name"]}}
    Kube(played_cluster).create(f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/eviction", wish)
    job = drive(job, runs_again)
    is_free_of_retries(job)
    assert attempts(job)[0].reason == "ended_from_outside"


@pytest.mark.slow
def test_a_part_goes_on_once_an_admin_confirmed_the_end_of_its_vanished_pod(house: Cast, api: Api) -> None:
    job = vanished(house, api)
    claim = Claim.objects.get(holder_id=job.pk, state=Claim.State.ADMITTED)
    assert admission.confirm_end(house.admin, claim)
    job = drive(job, runs_again)
    assert "end_confirmed" in told(job)
    is_free_of_retries(job)


@pytest.mark.slow
def test_a_cancelled_job_is_over_once_an_admin_confirmed_the_end(house: Cast, api: Api) -> None:
    job = vanished(house, api)
    assert lifecycle.cancel(house.alice, job)
    claim = Claim.objects.get(holder_id=job.pk, state=Claim.State.ADMITTED)
    assert admission.confirm_end(house.admin, claim)
    job = drive(job, in_phase("cancelled"))
    assert held(job) == 0


def vanished(house: Cast, api: Api) -> Job:
    """Return a job whose pod somebody removed while it ran."""
    job = running(house)
    pod = pod_of(job, api)
    namespace, name = job.tenant.namespace, pod["metadata"]["name"]
    api.delete("Job", namespace, attempts(job)[0].object_name, propagation="Orphan")
    api.merge_patch("Pod", namespace, name, {"metadata": {"finalizers": None}})
    api.delete("Pod", namespace, name, grace_seconds=0)
    return drive(job, lambda row: "end_unproven" in told(row))


def test_a_job_is_deleted_only_once_no_pod_of_it_is_left(house: Cast, api: Api) -> None:
    job = running(house)
    pod = pod_of(job, api)
    late = {name: pod["metadata"][name] for name in ("namespace", "labels", "finalizers")} | {"name": "late"}
    late["labels"] = late["labels"] | {"berth.dev/run": str(job.pk)}
    spec = {"containers": pod["spec"]["containers"], "nodeName": pod["spec"]["nodeName"]}
    api.create({"apiVersion": "v1", "kind": "Pod", "metadata": late, "spec": spec | secure(pod)})
    assert lifecycle.delete(house.alice, job)
    drive(job, lambda row: row.deleted_at is not None)
    there = api.get("Pod", job.tenant.namespace, "late")
    assert there is None or not there["metadata"].get("finalizers")


def secure(pod: dict[str, Any]) -> dict[str, Any]:
    return {"securityContext": pod["spec"]["securityContext"], "volumes": pod["spec"]["volumes"]}


def test_a_trouble_of_one_part_is_told_once_while_another_runs(house: Cast) -> None:
    job = running(house, completions=2, parallelism=2)
    well, ill = attempts(job)
    found = explain_trouble("volume", 'MountVolume.SetUp failed: secret "x" not found')
    since = set()
    for _look in range(3):
        row = Job.objects.get(pk=job.pk)
        writing.note_trouble(well, None)
        since.add(writing.note_trouble(ill, found))
        writing.show_troubles(row, [well, ill])
    row = Job.objects.get(pk=job.pk)
    assert len(since) == 1
    assert told(row).count(found.diagnosis.code) == 1
    assert row.message_code == found.diagnosis.code
    writing.note_trouble(ill, None)
    writing.show_troubles(row, [well, ill])
    row = Job.objects.get(pk=job.pk)
    assert (row.troubles, row.message_code) == ({}, "doing_running")

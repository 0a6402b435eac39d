"""Jobs from their submission to their end: success, retries, cancellation, a lost pod, deletion."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import Invalid
from clusters.api import Api
from jobs import enqueue
from jobs.models import Job
from jobs.runs import expiry, lifecycle
from quotas import admission
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.driving_jobs import FAILS, RUNS, attempts, drive, held, in_phase, submitted, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]


def pods_of(job: Job, api: Api) -> list[dict[str, Any]]:
    return api.list("Pod", namespace=job.tenant.namespace, labels={"berth.dev/job": str(job.pk)})


def test_a_job_succeeds_once_all_its_parts_have(house: Cast) -> None:
    job = drive(submitted(house, completions=3, parallelism=2), in_phase("succeeded"))
    assert [(one.part.index, one.exit_code, one.counted) for one in attempts(job)] == [
        (0, 0, False),
        (1, 0, False),
        (2, 0, False),
    ]
    assert told(job).count("part_succeeded") == 3
    assert held(job) == 0
    assert job.ended_at is not None


def test_no_more_parts_run_than_may(house: Cast) -> None:
    job = submitted(house, completions=5, parallelism=2)
    assert held(job) == 2


@pytest.mark.slow
def test_a_part_that_fails_is_tried_again_as_often_as_was_asked_for(house: Cast) -> None:
    job = drive(submitted(house, ends=FAILS, retries=2), in_phase("failed"))
    assert [(one.number, one.exit_code, one.counted) for one in attempts(job)] == [
        (1, 1, True),
        (2, 1, True),
        (3, 1, True),
    ]
    assert (job.failure or {})["code"] == "exit_code"
    assert held(job) == 0


def test_a_final_exit_code_is_not_tried_again(house: Cast) -> None:
    job = drive(submitted(house, ends=FAILS, final_exit_codes=[1]), in_phase("failed"))
    assert len(attempts(job)) == 1
    assert (job.failure or {})["code"] == "exit_code_is_final"


@pytest.mark.slow
def test_retry_failed_runs_what_did_not_succeed(house: Cast) -> None:
    job = drive(submitted(house, ends=FAILS, retries=0), in_phase("failed"))
    assert lifecycle.retry_failed(house.alice, job)
    job = drive(job, lambda row: row.phase == "failed" and len(attempts(row)) == 2)
    assert [one.number for one in attempts(job)] == [1, 2]


def test_a_cancelled_job_ends_its_pods_before_its_claims_are_released(house: Cast, api: Api) -> None:
    job = submitted(house, ends=RUNS, completions=2, parallelism=1)
    drive(job, in_phase("running"))
    assert lifecycle.cancel(house.alice, job)
    job.refresh_from_db()
    assert (job.phase, held(job)) == ("cancelling", 1)
    job = drive(job, in_phase("cancelled"))
    assert held(job) == 0
    assert all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods_of(job, api))
    assert not lifecycle.cancel(house.alice, job)


def test_a_pod_that_is_deleted_costs_no_retry(house: Cast, api: Api) -> None:
    job = drive(submitted(house, ends=RUNS, retries=0), in_phase("running"))
    (pod,) = pods_of(job, api)
    api.delete("Pod", job.tenant.namespace, pod["metadata"]["name"])
    job = drive(job, lambda row: len(attempts(row)) == 2 and row.phase == "running")
    first, second = attempts(job)
    assert (first.reason, first.counted) == ("ended_from_outside", False)
    assert second.part.failures == 0


def test_a_pod_that_vanished_keeps_its_claim(house: Cast, api: Api) -> None:
    job = drive(submitted(house, ends=RUNS), in_phase("running"))
    (pod,) = pods_of(job, api)
    namespace, name = job.tenant.namespace, pod["metadata"]["name"]
    api.delete("Job", namespace, f"job-{attempts(job)[0].run}", propagation="Orphan")
    api.merge_patch("Pod", namespace, name, {"metadata": {"finalizers": None}})
    api.delete("Pod", namespace, name, grace_seconds=0)
    job = drive(job, lambda row: "end_unproven" in told(row))
    assert held(job) == 1
    (claim,) = Claim.objects.filter(holder_id=job.pk)
    assert admission.confirm_end(house.admin, claim)
    job = drive(job, lambda row: len(attempts(row)) == 2 and row.phase == "running")
    assert [(one.reason, one.counted) for one in attempts(job)] == [("end_confirmed", False), ("", False)]
    assert held(job) == 1


def test_a_deleted_job_leaves_nothing_in_the_cluster(house: Cast, api: Api) -> None:
    job = drive(submitted(house, ends=RUNS, secret_env={"KEY": "hush"}), in_phase("running"))
    assert lifecycle.delete(house.alice, job)
    job = drive(job, lambda row: row.deleted_at is not None)
    assert held(job) == 0
    assert job.secret.clear_env() == {}
    for kind in ("Job", "Secret"):
        there = api.list(kind, namespace=job.tenant.namespace, labels={"berth.dev/job": str(job.pk)})
        assert [body for body in there if not body["metadata"].get("deletionTimestamp")] == []


@pytest.mark.slow
def test_a_job_is_deleted_when_its_time_to_live_has_passed(house: Cast) -> None:
    job = drive(submitted(house, ttl_hours=1), in_phase("succeeded"))
    Job.objects.update(expires_at=job.ended_at)
    expiry.delete_expired()
    job = drive(job, lambda row: row.deleted_at is not None)
    assert job.phase == "succeeded"


def test_each_combination_of_a_sweep_is_a_part_with_its_values(house: Cast, api: Api) -> None:
    sweep = {"lr": [0.1, 0.01], "name": ["a", "b"]}
    job = submitted(house, ends=RUNS, sweep=sweep, parallelism=1)
    assert [part.parameters for part in job.parts.order_by("index")] == [
        {"lr": 0.1, "name": "a"},
        {"lr": 0.1, "name": "b"},
        {"lr": 0.01, "name": "a"},
        {"lr": 0.01, "name": "b"},
    ]
    drive(job, in_phase("running"))
    (pod,) = pods_of(job, api)
    values = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert (values["BERTH_PARAM_LR"], values["BERTH_PARAM_NAME"], values["BERTH_INDEX"]) == ("0.1", "a", "0")


def test_parts_side_by_side_need_a_home_that_can_be_shared(house: Cast) -> None:
    house.cluster.shared_classes = []
    house.cluster.save()
    with pytest.raises(Invalid) as refused:
        submitted(house, completions=2, parallelism=2)
    assert refused.value.code == "volume_is_exclusive"


def test_a_mark_asks_for_a_look_at_a_job(house: Cast) -> None:
    job = submitted(house)
    enqueue.look([job.pk])
    job.refresh_from_db()
    assert job.dirty_since is not None

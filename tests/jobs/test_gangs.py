"""Jobs on several nodes against a real HTTP Kubernetes API: all pods run or none, and the end of all is proven."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import Invalid
from clusters.api import Api
from clusters.watch.ticks import LONGEST_SECONDS
from jobs.cluster import look
from jobs.models import Job
from jobs.runs import lifecycle
from jobs.submit import Distributed
from quotas import admission
from quotas.models import Claim
from tests.cast import Cast
from tests.shared.driving_jobs import FAILS, RUNS, attempts, drive, held, in_phase, submitted, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]
TWO = Distributed(nodes=2, processes_per_node=1, framework="ranks")


def there(job: Job, api: Api, kind: str) -> list[dict[str, Any]]:
    found = api.list(kind, namespace=job.tenant.namespace, labels={"berth.dev/job": str(job.pk)})
    return [body for body in found if not body["metadata"].get("deletionTimestamp")]


def running(house: Cast) -> Job:
    return drive(submitted(house, ends=RUNS, distributed=TWO, retries=0), in_phase("running"))


def test_a_part_succeeds_once_all_its_pods_have(house: Cast, api: Api) -> None:
    job = drive(submitted(house, distributed=TWO), in_phase("succeeded"))
    (one,) = attempts(job)
    assert [(key, one.members[key]["reason"], one.members[key]["exit_code"]) for key in ("0", "1")] == [
        ("0", "succeeded", 0),
        ("1", "succeeded", 0),
    ]
    assert held(job) == 0
    assert there(job, api, "Service") == there(job, api, "NetworkPolicy") == []


def test_one_claim_has_a_node_for_each_pod_which_have_names_and_a_policy(house: Cast, api: Api) -> None:
    job = running(house)
    (claim,) = Claim.objects.filter(holder_id=job.pk)
    pods = there(job, api, "Pod")
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == sorted(claim.nodes)
    (one,) = attempts(job)
    assert [pod["spec"]["subdomain"] for pod in pods] == [one.object_name] * 2
    for kind in ("Service", "NetworkPolicy"):
        assert [body["metadata"]["name"] for body in there(job, api, kind)] == [one.object_name]


def test_a_service_that_somebody_deletes_comes_back(house: Cast, api: Api) -> None:
    job = running(house)
    api.delete("Service", job.tenant.namespace, attempts(job)[0].object_name)
    drive(job, lambda row: bool(there(row, api, "Service")))


def test_a_policy_that_somebody_deletes_comes_back(
    house: Cast, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = running(house)
    api.delete("NetworkPolicy", job.tenant.namespace, attempts(job)[0].object_name)
    monkeypatch.setattr(look, "POLICY_SECONDS", LONGEST_SECONDS)  # each look
    drive(job, lambda row: bool(there(row, api, "NetworkPolicy")))


def test_a_pod_that_is_deleted_ends_all_and_costs_no_retry(house: Cast, api: Api) -> None:
    job = running(house)
    pod = there(job, api, "Pod")[1]
    api.delete("Pod", job.tenant.namespace, pod["metadata"]["name"])
    job = drive(job, lambda row: len(attempts(row)) == 2 and row.phase == "running")
    first, second = attempts(job)
    assert (first.reason, first.counted, first.unproven) == ("ended_from_outside", False, False)
    assert second.part.failures == 0
    assert {one["metadata"]["labels"]["berth.dev/run"] for one in there(job, api, "Service")} == {
        str(second.run)
    }


@pytest.mark.slow
def test_the_end_of_a_pod_that_vanished_is_an_admins_to_confirm(house: Cast, api: Api) -> None:
    job = running(house)
    pod = there(job, api, "Pod")[0]
    namespace, name = job.tenant.namespace, pod["metadata"]["name"]
    api.merge_patch("Pod", namespace, name, {"metadata": {"finalizers": None}})
    api.delete("Pod", namespace, name, grace_seconds=0)
    job = drive(job, lambda row: "end_unproven" in told(row) and not there(row, api, "Job"))
    assert held(job) == 1
    (claim,) = Claim.objects.filter(holder_id=job.pk)
    assert admission.confirm_end(house.admin, claim)
    job = drive(job, lambda row: len(attempts(row)) == 2 and row.phase == "running")
    assert attempts(job)[0].reason in ("end_confirmed", "ended_by_again")
    assert attempts(job)[0].counted is False


def test_a_failure_names_the_rank(house: Cast) -> None:
    job = drive(submitted(house, ends=FAILS, distributed=TWO, retries=0), in_phase("failed"))
    assert (job.failure or {})["code"] == "rank_exit_code"
    assert (job.failure or {})["data"]["exit_code"] == 1


def test_a_cancelled_job_leaves_no_pod_of_any_node(house: Cast, api: Api) -> None:
    job = running(house)
    assert lifecycle.cancel(house.alice, job)
    job = drive(job, in_phase("cancelled"))
    assert held(job) == 0
    for kind in ("Service", "NetworkPolicy", "Job"):
        assert there(job, api, kind) == []


def test_several_nodes_need_a_home_that_all_can_mount(house: Cast) -> None:
    house.cluster.shared_classes = []
    house.cluster.save()
    with pytest.raises(Invalid) as refused:
        submitted(house, distributed=TWO)
    assert refused.value.code == "volume_is_exclusive"
    assert list(refused.value.fields) == ["distributed"]

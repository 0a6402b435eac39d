"""Pools, quotas and the queue as people see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.access import Actor
from accounts.models import APIToken, Membership, Tenant
from clusters.models import Cluster
from quotas import admission, estimates, queries
from quotas.allowed.storage import LIMITS
from quotas.models import Claim, Quota, TenantLimit
from quotas.sharing import Portion
from tests.cast import NETWORKS
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db


def pool_seen(stage: Stage, by: Actor, slug: str = "a100") -> dict[str, Any]:
    return next(pool for pool in queries.pools_for(by) if pool["slug"] == slug)


def queue_of(claim: Claim) -> queries.Queue:
    return queries.queues_of([claim.pk])[claim.pk]


def test_a_pool_has_its_total_free_and_own_gpus(stage: Stage) -> None:
    stage.running(2)
    stage.running(1, by=stage.cast.bob)
    stage.pod("gpu-2", 1)
    stage.request(4)
    pool = pool_seen(stage, stage.cast.alice)
    assert pool["cluster"] == "main"
    assert pool["gpu"]["memory_mib"] == 81_920
    assert pool["gpus"] == {"total": 8, "free": 4, "mine": 2}
    assert pool["largest_free_on_one_node"] == 3
    assert (pool["waiting"], pool["sharing"], pool["isolation"]) == (1, "exclusive", "dedicated")
    assert pool["next_free_at"] is None


def test_gpus_of_a_node_that_is_not_ready_are_not_free(stage: Stage) -> None:
    stage.change_node("gpu-2", ready=False)
    pool = pool_seen(stage, stage.cast.alice)
    assert pool["gpus"] == {"total": 8, "free": 4, "mine": 0}
    assert pool["nodes"] == {"total": 2, "ready": 1}


def test_replicas_are_counted_as_parts_of_gpus(stage: Stage) -> None:
    shared = stage.another_pool(
        "t4-shared", node_labels={"t4": "yes"}, units_per_gpu=4, sharing="time-slicing", unit_memory_mib=4096
    )
    stage.node("t4-1", 16, labels={"t4": "yes"})
    stage.quota(4, pool=shared)
    stage.running(1, pool=shared)
    pool = pool_seen(stage, stage.cast.alice, "t4-shared")
    assert pool["gpus"] == {"total": 4, "free": 3.75, "mine": 0.25}
    assert pool["isolation"] == "none"
    [quota] = [q for q in queries.quotas_for(stage.cast.alice) if q["pool"] == "t4-shared"]
    assert (quota["used_gpus"], quota["limit_gpus"]) == (0.25, 4)


def test_a_pool_without_gpus_is_a_pool_too(stage: Stage) -> None:
    stage.cpu_pool()
    pool = pool_seen(stage, stage.cast.alice, "cpu")
    assert pool["gpus"] == {"total": 0, "free": 0, "mine": 0}
    assert pool["sharing"] is None


def test_a_token_of_one_tenant_sees_only_that_tenants_use(stage: Stage) -> None:
    Membership.objects.create(user=stage.cast.alice.user, tenant=stage.cast.second, role="member")
    stage.running(2)
    bound = Actor(stage.cast.alice.user, APIToken(tenant=stage.cast.second, scopes=["read"]))
    assert pool_seen(stage, bound)["gpus"]["mine"] == 0
    assert {quota["tenant"] for quota in queries.quotas_for(bound)} == {"second"}


def test_limits_are_returned_with_the_use(stage: Stage) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, cpu_millicores=8000)
    stage.running(1)
    stage.running(1, holder_kind=Claim.Holder.JOB)
    [limits] = queries.limits_for(stage.cast.alice)
    assert limits == {
        "tenant": "demo",
        "cpu_millicores": {"used": 2000, "limit": 8000},
        "memory_mib": {"used": 2048, "limit": None},
        "workspaces": {"used": 1, "limit": None},
        **{name: {"used": 0, "limit": None} for name in LIMITS},
        "person_gpus": {"used": 2, "limit": None},
        "person_workspaces": {"used": 1, "limit": None},
    }


def test_borrowed_gpus_are_returned_beside_own_gpus(stage: Stage) -> None:
    Quota.objects.filter(tenant=stage.cast.demo).update(nominal_gpus=1, borrowing_limit_gpus=3, weight=2)
    stage.running(3)
    [quota] = queries.quotas_for(stage.cast.alice)
    names = ("nominal_gpus", "borrowed_gpus", "used_gpus", "limit_gpus", "weight")
    assert [quota[name] for name in names] == [1, 2, 3, 4, 2]


def test_the_queue_has_position_requests_ahead_and_reason(stage: Stage) -> None:
    claims = [stage.request(4) for _ in range(3)]
    urgent = stage.request(4, by=stage.cast.carol, priority=1)
    stage.admit()
    assert not queries.queues_of([claims[0].pk, urgent.pk])  # they run
    second = queue_of(claims[2])
    assert (second["position"], second["ahead"], second["estimated_start"]) == (2, 1, None)
    assert second["reason"]["code"] == "quota_full"
    assert second["reason"]["message"] and second["reason"]["hint"]


def test_the_queue_counts_the_gpus_ahead(stage: Stage) -> None:
    for name in ("gpu-1", "gpu-2"):
        stage.pod(name)
    stage.running(1)
    stage.running(4, by=stage.cast.carol)
    stage.quota(8)
    stage.request(4)
    last = stage.request(1, by=stage.cast.alice)
    stage.admit()
    queue = queue_of(last)
    assert queue["reason"]["code"] == "behind_larger"
    assert queue["gpus_ahead"] == 4


def test_before_the_first_pass_the_reason_is_queued(stage: Stage) -> None:
    assert queue_of(stage.request())["reason"]["code"] == "queued"


def test_a_claim_sent_back_keeps_the_clusters_reason(stage: Stage) -> None:
    successor = admission.send_back(stage.running(), "no_free_gpus", {"gpus": 1, "free_gpus": 0})
    assert queue_of(successor)["reason"]["code"] == "no_free_gpus"


def outlook(stage: Stage, gpus: int, **values: Any) -> estimates.Estimate:
    defaults: dict[str, Any] = {"tenant": stage.cast.demo, "pool": stage.pool}
    defaults |= {"cpu_millicores": 1000, "memory_mib": 1024}
    asked = estimates.possible_claim(portion=Portion(gpus), **(defaults | values))
    return estimates.Estimator().estimate(asked, with_times=True)


def test_an_estimate_describes_the_start_of_a_request_and_writes_nothing(stage: Stage) -> None:
    starts = outlook(stage, 4)
    assert (starts["admissible"], starts["starts_now"], starts["position"]) == (True, True, None)
    assert (starts["reasons"], starts["estimated_start"]) == ([], None)
    stage.running(3)
    stage.request(2)
    stage.admit()
    waits = outlook(stage, 2)
    assert (waits["admissible"], waits["starts_now"], waits["position"]) == (True, False, 2)
    assert [reason["code"] for reason in waits["reasons"]] == ["quota_full"]
    assert waits["gpus_ahead"] == 2
    assert waits["estimated_from"] and waits["estimated_start"] and waits["estimated_to"]
    assert waits["estimated_from"] < waits["estimated_start"] < waits["estimated_to"]
    refused = outlook(stage, 5)
    assert (refused["admissible"], refused["position"]) == (False, None)
    assert refused["reasons"][0]["code"] == "quota_exceeded"
    assert Claim.objects.count() == 2


def test_an_estimate_comes_true(stage: Stage) -> None:
    for gpus in (3, 1, 2, 4, 1):
        said = outlook(stage, gpus)
        claim = stage.request(gpus)
        stage.admit()
        queue = queries.queues_of([claim.pk]).get(claim.pk)
        assert said["starts_now"] == (queue is None)
        assert said["position"] == (queue and queue["position"])


def crowd(stage: Stage, number: int) -> None:
    """Add a pool, a tenant, a node, a pod and requests."""
    pool = stage.another_pool(f"more-{number}", units_per_gpu=number)
    tenant = Tenant.objects.create(slug=f"tenant-{number}", name="T")
    Membership.objects.create(user=stage.cast.alice.user, tenant=tenant, role="member")
    Quota.objects.create(tenant=tenant, pool=pool, nominal_gpus=9)
    TenantLimit.objects.create(tenant=tenant)
    node = stage.node(f"node-{number}", 4)
    stage.pod(node.name, 1)
    for _ in range(3):
        stage.request(1, tenant=tenant, pool=pool)
    stage.admit(pool)


READS: dict[str, Callable[[Stage], object]] = {
    "pools": lambda stage: queries.pools_for(stage.cast.alice),
    "quotas": lambda stage: queries.quotas_for(stage.cast.alice),
    "limits": lambda stage: queries.limits_for(stage.cast.alice),
    "queues": lambda stage: queries.queues_of(Claim.objects.values_list("pk", flat=True)),
    "outlook": lambda stage: outlook(stage, 1),
    "a pass with nothing to start": lambda stage: stage.admit(),
}


def test_the_number_of_queries_does_not_grow(stage: Stage) -> None:
    for _ in range(3):
        stage.request(4)
    stage.admit()

    def counts() -> dict[str, int]:
        found = {}
        for name, read in READS.items():
            with CaptureQueriesContext(connection) as captured:
                read(stage)
            found[name] = len(captured)
        return found

    first = counts()
    for number in range(1, 6):
        crowd(stage, number)
    for _ in range(5):
        stage.request(4)
    stage.admit()
    assert counts() == first


def test_nodes_of_another_cluster_are_not_counted(stage: Stage) -> None:
    elsewhere = Cluster.objects.create(slug="elsewhere", name="Elsewhere", **NETWORKS)
    stage.another_pool("far", cluster=elsewhere)
    stage.node("gpu-1", 8, cluster=elsewhere)
    assert pool_seen(stage, stage.cast.alice)["gpus"]["total"] == 8

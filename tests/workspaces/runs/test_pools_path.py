"""Pools and quotas on a Kubernetes API: chosen nodes, resources of the pods, and a tenant's ResourceQuota."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from clusters.errors import ClusterRefused
from clusters.models import Node
from quotas import admission, reclaim
from quotas.models import Claim, Pool
from quotas.pools import selection
from tests.shared.driving import claim_of, drive, in_phase, told
from tests.workspaces.many_nodes import House, house, many_nodes, own_rights
from workloads.pods import drivers
from workspaces.runs import lifecycle

__all__ = ["house", "many_nodes", "own_rights"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

GPU = "nvidia.com/gpu"
TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}


# --- Nodes of a pool


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        ({"match_product": "NVIDIA-RTX-A5000"}, {"ampere"}),
        ({"match_product": "NVIDIA-A100-SXM4-80GB", "sharing": "mig", "mig_profile": "3g.40gb",
          "units_per_gpu": 2}, {"single"}),
        ({"match_compute_capability": "8.6"}, {"ampere", "ada", "hopper"}),
        ({"match_compute_capability": "8.7", "match_gpu_memory_mib": 49_140}, {"ada", "hopper"}),
        ({"match_compute_capability": "8.6", "match_gpu_memory_mib": 49_141}, {"hopper"}),
        ({"match_ecc": False, "match_compute_capability": "8.6"}, {"ampere"}),
    ],
    ids=["a product", "a MIG profile", "a capability", "memory", "all its memory", "no ECC"],
)  # fmt: skip
def test_pods_run_where_a_pool_counts_on_them(house: House, asked: dict[str, Any], nodes: set[str]) -> None:
    pool = house.pool("chosen", tolerations=[TOLERATION], **asked)
    members = selection.members(pool, Node.objects.all())
    assert {node.name for node in members if GPU in node.allocatable} == nodes
    assert house.started(pool, gpus=Fraction(1, pool.units_per_gpu)).node in nodes


def test_a_node_with_a_taint_is_entered_by_pools_that_tolerate_it_alone(house: House) -> None:
    here = {"node_labels": {"nvidia.com/gpu.family": "hopper"}}
    barred, tolerant = house.pool("barred", **here), house.pool("tolerant", tolerations=[TOLERATION], **here)
    waits = drive(house.launched(barred, "barred"), in_phase("waiting"))
    assert claim_of(waits).reason_code
    assert house.started(tolerant).node == "hopper"


# --- Resources of its pods


@pytest.fixture
def runtime_class(house: House) -> Iterator[str]:
    name = f"nvidia-{uuid4().hex[:8]}"
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}}
    path = f"/apis/node.k8s.io/v1/runtimeclasses/{name}"
    house.kube.apply(path, body | {"handler": "nvidia"})
    yield name
    house.kube.call("DELETE", path)


def test_what_an_admin_says_of_a_pool_and_its_cluster_reaches_its_pods_under_pod_security_restricted(
    house: House, runtime_class: str
) -> None:
    cluster = house.cast.cluster
    cluster.image_pull_secrets, cluster.https_proxy = ["mirror"], "http://proxy.example.org:3128"
    cluster.no_proxy = ".example.org"
    cluster.save()
    pool = house.pool(
        "old",
        node_labels={"kubernetes.io/hostname": "whole"},
        runtime_class=runtime_class,
        image_pull_secrets=["nvcr", "mirror"],
        driver_path="/var/lib/nvidia-docker/driver",
    )
    workspace = house.started(pool)
    pod = house.pod(workspace)
    (container,) = pod["spec"]["containers"]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    claim = house.api.get("PersistentVolumeClaim", workspace.tenant.namespace, drivers.claim_name(pool))
    namespace = house.api.get("Namespace", None, workspace.tenant.namespace)
    assert namespace is not None
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert (pod["status"]["phase"], pod["spec"]["nodeName"]) == ("Running", "whole")
    assert pod["spec"]["runtimeClassName"] == runtime_class
    assert pod["spec"]["imagePullSecrets"] == [{"name": "mirror"}, {"name": "nvcr"}]
    assert env["https_proxy"] == env["HTTPS_PROXY"] == cluster.https_proxy
    assert env["no_proxy"].endswith(",.example.org")
    assert claim is not None
    assert claim["status"]["phase"] == "Bound"
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["driver"]["readOnly"] is True


def test_a_runtime_class_that_is_not_there_is_told_by_name(house: House) -> None:
    here = {"kubernetes.io/hostname": "whole"}
    pool = house.pool("absent", node_labels=here, runtime_class="absent")
    workspace = drive(house.launched(pool), lambda row: bool(row.troubles) or row.failure is not None)
    assert workspace.message_code == "class_missing"


# --- The ResourceQuota behind the queue


class TestBackstop:
    @pytest.fixture
    def pool(self, house: House) -> Pool:
        return house.pool("whole", node_labels={"kubernetes.io/hostname": "whole"})

    def hard(self, house: House) -> dict[str, str]:
        [quota] = house.api.list("ResourceQuota", namespace=house.cast.demo.namespace)
        return dict(quota["spec"]["hard"])

    def test_it_follows_what_the_tenant_may_hold(self, house: House, pool: Pool) -> None:
        workspace = house.started(pool)
        assert self.hard(house) == {f"requests.{GPU}": "2"}
        house.quota(pool, 1, borrowing=3)
        drive(workspace, in_phase("ready"))
        assert self.hard(house) == {f"requests.{GPU}": "4"}

    def test_lowered_below_use_what_runs_may_restart_and_nothing_comes_beside_it(
        self, house: House, pool: Pool
    ) -> None:
        workspace = house.started(pool)
        run = workspace.run
        house.quota(pool, 0)
        drive(workspace, in_phase("ready"))
        assert self.hard(house) == {f"requests.{GPU}": "1"}
        lifecycle.restart(house.cast.alice, workspace)
        workspace = drive(workspace, lambda row: row.phase == "ready" and row.run != run, 60)
        pod = house.pod(workspace)
        metadata = {"name": "beside", "namespace": workspace.tenant.namespace}
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        with pytest.raises(ClusterRefused, match=f"exceeded quota: berth, requested: requests.{GPU}=1"):
            house.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


# --- Preempted GPUs, and pods that went elsewhere


def test_borrowed_gpus_go_back_to_their_owner_and_the_run_goes_on_after(house: House) -> None:
    cast = house.cast
    pool = house.pool("lent", node_labels={"kubernetes.io/hostname": "whole"})
    house.quota(pool, 0, borrowing=2)
    house.quota(pool, 2, tenant=cast.second)
    borrower = house.started(pool, gpus=Fraction(2))
    run = borrower.run
    owner = drive(house.launched(pool, "own", by=cast.carol, gpus=Fraction(1)), in_phase("waiting"))
    assert claim_of(borrower).reclaim_code == "owner_waits"
    Claim.objects.filter(pk=claim_of(borrower).pk).update(reclaim_at=timezone.now())
    reclaim.on_tick()
    borrower = drive(borrower, lambda row: row.run != run)
    house.look()
    assert (borrower.phase, claim_of(borrower).returns_first) == ("waiting", True)
    owner = drive(owner, in_phase("ready"))
    house.look()
    assert drive(borrower, in_phase("waiting")).desired == "running"
    lifecycle.stop(cast.carol, owner)
    drive(owner, in_phase("stopped"))
    house.look()
    assert drive(borrower, in_phase("ready")).node == "whole"
    assert told(borrower).count("given_back") == 1


def test_a_pod_that_went_to_another_node_than_admission_chose_is_counted_there(house: House) -> None:
    pool = house.pool("pair", match_compute_capability="8.6")  # hopper has a taint
    house.quota(pool, 4)
    displaced = house.launched(pool, "displaced", gpus=Fraction(2))
    admission.admit(pool.pk)
    chosen = Claim.objects.get(holder_id=displaced.pk).node
    other = house.foreign_pod(chosen, {GPU: "2"})
    displaced = drive(displaced, in_phase("ready"))
    assert {chosen, displaced.node} == {"ampere", "ada"}
    house.look()
    waits = drive(house.launched(pool, "waits"), in_phase("waiting"))
    house.kube.call("DELETE", other, gracePeriodSeconds="0")
    house.look()
    assert drive(waits, in_phase("ready")).node == chosen

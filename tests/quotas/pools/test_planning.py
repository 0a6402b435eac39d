"""Tests that the nodes of a cluster become plans of pools and sizes."""

from dataclasses import fields
from typing import Any

import pytest

from accounts.models import Tenant
from clusters.models import Cluster
from clusters.nodes.hami import cards_of_node
from devcluster import gpus
from portal.up import seed
from quotas.models import Pool
from quotas.pools import rules as pool_rules
from quotas.pools.planning import NodeSeen, PoolPlan, family, plan_pools
from quotas.pools.selection import chooses, terms

GIB = 1024
LABELS = {
    "gpu_sharing_strategy": "nvidia.com/gpu.sharing-strategy",
    "mig_memory": "nvidia.com/mig-1g.10gb.memory",
}


def node(
    gpus: dict[str, int] | None = None, cpu: int = 32, memory_gib: int = 256, taint: str = "", **labels: str
) -> NodeSeen:
    """Return a node. Give labels as gpu_product for nvidia.com/gpu.product."""
    return NodeSeen(
        labels={
            LABELS.get(name, f"nvidia.com/{name.replace('_', '.')}"): value for name, value in labels.items()
        },
        taints=[{"key": taint, "effect": "NoSchedule"}] if taint else [],
        cpu_millicores=cpu * 1000,
        memory_mib=memory_gib * GIB,
        gpus=gpus or {},
    )


def a100(count: int = 4) -> NodeSeen:
    return node(
        {"nvidia.com/gpu": count},
        gpu_product="NVIDIA-A100-SXM4-80GB",
        gpu_memory="81920",
        gpu_count=str(count),
        gpu_compute_major="8",
        gpu_compute_minor="0",
        mig_strategy="single",
    )


def mig() -> NodeSeen:
    return node(
        {"nvidia.com/mig-1g.10gb": 14},
        gpu_product="NVIDIA-A100-SXM4-80GB",
        gpu_memory="81920",
        gpu_count="2",
        mig_strategy="mixed",
        mig_memory="9728",
    )


def t4_shared() -> NodeSeen:
    return node(
        {"nvidia.com/gpu": 16},
        gpu_product="Tesla-T4-SHARED",
        gpu_memory="15360",
        gpu_count="4",
        gpu_replicas="4",
        gpu_sharing_strategy="time-slicing",
    )


def by_slug(*nodes: NodeSeen) -> dict[str, PoolPlan]:
    return {pool.slug: pool for pool in plan_pools(nodes)}


def test_the_trial_cluster_gets_the_pools_and_flavors_that_the_guide_names() -> None:
    pools = by_slug(a100(), a100(), t4_shared(), mig(), node())
    assert set(pools) == {"a100", "t4-shared", "a100-mig", "cpu"}
    flavors = {flavor.slug for pool in pools.values() for flavor in pool.flavors}
    assert flavors == {"a100-1", "a100-2", "a100-4", "t4-quarter", "mig-1g", "cpu-small"}
    assert {slug: pool.total_gpus for slug, pool in pools.items()} == {
        "a100": 8,
        "t4-shared": 4,
        "a100-mig": 2,
        "cpu": 0,
    }
    assert {pool.name for pool in pools.values()} == {"A100 80GB", "A100 80GB MIG", "T4 shared", "CPU"}
    assert pools["a100"].flavors[0].name == "1 × A100 80GB"
    assert pools["a100-mig"].flavors[0].name == "MIG 1g.10gb of A100 80GB"
    assert pools["t4-shared"].units_per_gpu == 4
    assert pools["a100-mig"].units_per_gpu == 7


def test_a_node_cut_by_mig_is_never_in_the_pool_of_whole_gpus() -> None:
    pools = by_slug(a100(), mig())
    whole, cut = pools["a100"].node_labels.items(), pools["a100-mig"].node_labels.items()
    assert whole <= a100().labels.items()
    assert not whole <= mig().labels.items()
    assert cut <= mig().labels.items()
    assert not cut <= a100().labels.items()


WAYS: dict[str, dict[str, Any]] = {
    "whole": {},
    "sliced": {"sharing": "time-slicing", "replicas": 4},
    "sliced otherwise": {"sharing": "time-slicing", "replicas": 8},
    "renamed": {"sharing": "mps", "replicas": 4, "rename": True},
    "mixed": {"sharing": "mig", "profile": "1g.10gb", "instances": 7},
    "single": {"sharing": "mig", "profile": "3g.40gb", "instances": 2, "strategy": "single"},
    "hami": {"sharing": "hami", "split": 10},
    "gpu-manager": {"sharing": "gpu-manager"},
}


def cut(way: str) -> NodeSeen:
    """Return a node with two A100 shared in this way, with the resources, labels and cards that it announces."""
    told = {"product": "NVIDIA-A100-SXM4-80GB", "count": 2, "memory_mib": 81_920, "compute": "8.0"} | WAYS[
        way
    ]
    resources = {name: int(amount) for name, amount in gpus.resources(told).items()}
    labels = gpus.labels(told) | {"kubernetes.io/hostname": way.replace(" ", "-")}
    return NodeSeen(labels, [], 32_000, 256 * GIB, resources, cards_of_node(gpus.annotations(way, told)))


def test_each_way_of_cutting_the_same_gpu_is_a_pool_of_its_own() -> None:
    nodes = {way: cut(way) for way in WAYS}
    plans = [plan for plan in plan_pools(nodes.values()) if plan.resource_name]
    assert len(plans) == len(WAYS)
    for way, node in nodes.items():
        chosen = []
        for plan in plans:
            rows = {f.name: getattr(plan, f.name) for f in fields(plan)}
            del rows["total_gpus"], rows["flavors"]
            pool = Pool(cluster=Cluster(), **rows)
            assert pool_rules.faults(pool) == {}
            if node.gpus.get(plan.resource_name) and chooses(terms(pool), node.labels):
                chosen.append((plan.sharing, plan.units_per_gpu, plan.total_gpus))
        assert len(chosen) == 1, way
        assert chosen[0][2] == 2  # cards


@pytest.mark.django_db
def test_a_planned_pool_becomes_rows() -> None:
    cluster = Cluster.objects.create(slug=seed.TRIAL_CLUSTER, name="Trial")
    Tenant.objects.create(slug="demo", name="Demo")
    seed.seed_pool(cluster, by_slug(a100())["a100"])
    pool = Pool.objects.get()
    assert (pool.name, pool.gpu_memory_mib, pool.tolerations) == ("A100 80GB", 81_920, [])
    assert [(flavor.slug, flavor.units) for flavor in pool.flavors.order_by("units")] == [
        ("a100-1", 1),
        ("a100-2", 2),
        ("a100-4", 4),
    ]
    assert [(quota.nominal_gpus, quota.borrowing_limit_gpus) for quota in pool.quotas.all()] == [(4, 2)]


def test_shares_of_gpus_come_as_quarters_halves_and_whole_ones() -> None:
    [pool, _cpu] = plan_pools([cut("hami")])
    assert [(flavor.slug, flavor.units) for flavor in pool.flavors] == [
        ("a100-quarter", 25),
        ("a100-half", 50),
        ("a100-whole", 100),
    ]


def test_one_unit_of_mig_has_the_memory_of_its_profile() -> None:
    assert by_slug(mig())["a100-mig"].unit_memory_mib == 9728


def test_flavors_go_as_far_as_one_node_has_gpus() -> None:
    flavors = by_slug(a100(2))["a100"].flavors
    assert [flavor.units for flavor in flavors] == [1, 2]


def test_a_flavor_of_all_gpus_fits_on_the_smallest_node_beside_its_own_pods() -> None:
    small = a100()
    [*_, largest] = by_slug(small)["a100"].flavors
    assert largest.units == 4
    assert 0.5 * small.cpu_millicores < largest.cpu_millicores < small.cpu_millicores
    assert 0.5 * small.memory_mib < largest.memory_mib < small.memory_mib


@pytest.mark.parametrize(
    ("product", "slug"),
    [
        ("NVIDIA-A100-SXM4-80GB", "a100"),
        ("Tesla-T4", "t4"),
        ("NVIDIA-H200", "h200"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-GH200-480GB", "gh200"),
        ("NVIDIA-GeForce-RTX-4090", "rtx-4090"),
    ],
)
def test_a_pool_is_named_after_the_family_of_its_gpu(product: str, slug: str) -> None:
    assert family(product) == slug


def test_two_products_of_one_family_get_two_pools_with_two_names() -> None:
    other = node({"nvidia.com/gpu": 1}, gpu_product="NVIDIA-A100-PCIE-40GB")
    assert len([slug for slug in by_slug(a100(), other) if slug.startswith("a100")]) == 2


def test_what_keeps_others_off_gpu_nodes_is_tolerated_by_their_pool() -> None:
    tainted = node({"nvidia.com/gpu": 1}, taint="nvidia.com/gpu", gpu_product="Tesla-T4")
    assert by_slug(tainted)["t4"].tolerations == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]


def test_the_cpu_pool_is_made_of_nodes_without_gpus_where_a_label_tells_them_apart() -> None:
    plain = NodeSeen({"kubernetes.io/hostname": "n1", "kind": "plain"}, [], 8000, 8192, {})
    assert by_slug(a100(), plain)["cpu"].node_labels == {"kind": "plain"}
    only_named = NodeSeen({"kubernetes.io/hostname": "n1"}, [], 8000, 8192, {})
    assert by_slug(a100(), only_named)["cpu"].node_labels == {"kubernetes.io/hostname": "n1"}
    assert by_slug(a100())["cpu"].node_labels == {}

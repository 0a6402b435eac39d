"""Nodes that a pool selects: by labels, as Kubernetes' own scheduling rules do, and the same in every place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.models import Cluster, Node
from clusters.nodes.node_labels import MAJOR, MEMORY_MIB, MINOR, PRODUCT
from devcluster.scheduling.fitting import selector_fits
from quotas.models import Pool
from quotas.pools import selection
from quotas.pools.selection import ECC, Expression
from tests.quotas.pools.made import CLUSTER, pool
from workloads.pods.parts import node_affinity

A100 = "NVIDIA-A100-SXM4-80GB"


def chosen(by: Pool, **labels: str) -> bool:
    """Return True if the pool selects a node with these labels, given by short names (see `told`)."""
    told = {"product": PRODUCT, "memory": MEMORY_MIB, "ecc": ECC, "major": MAJOR, "minor": MINOR}
    node = Node(cluster=CLUSTER, name="n", labels={told.get(name, name): v for name, v in labels.items()})
    return selection.members(by, [node]) == [node]


def test_a_pool_without_conditions_has_every_node_of_its_cluster() -> None:
    assert chosen(pool())
    assert node_affinity(pool(), "") == {}
    elsewhere = Node(cluster=Cluster(slug="other"), name="n")
    assert selection.members(pool(), [elsewhere]) == []


@pytest.mark.parametrize(
    ("values", "labels", "fits"),
    [
        ({"node_labels": {"zone": "a", "kind": "gpu"}}, {"zone": "a", "kind": "gpu", "more": "x"}, True),
        ({"node_labels": {"zone": "a", "kind": "gpu"}}, {"zone": "a"}, False),
        ({"match_compute_capability": "8.6"}, {"major": "8", "minor": "9"}, True),
        ({"match_compute_capability": "8.6"}, {"major": "10", "minor": "0"}, True),
        ({"match_compute_capability": "8.6"}, {"major": "7", "minor": "9"}, False),
        ({"match_compute_capability": "9"}, {"major": "9", "minor": "0"}, True),
        ({"match_gpu_memory_mib": 40_000}, {"memory": "40000"}, True),
        ({"match_gpu_memory_mib": 40_000}, {"memory": "39999"}, False),
        ({"match_gpu_memory_mib": 40_000}, {"memory": "40000.5"}, False),
        ({"match_gpu_memory_mib": 40_000}, {}, False),
        ({"match_ecc": True}, {"ecc": "true"}, True),
        ({"match_ecc": True}, {}, False),
        ({"match_ecc": False}, {"ecc": "false"}, True),
        ({"match_ecc": False}, {}, False),
    ],
    ids=str,
)
def test_a_node_fits_if_all_its_labels_do(values: dict[str, Any], labels: dict[str, str], fits: bool) -> None:
    assert chosen(pool(**values), **labels) is fits


@pytest.mark.parametrize(
    ("values", "product", "fits"),
    [
        ({}, A100, True),
        ({}, f"{A100}-SHARED", False),  # its GPUs are replicas
        ({}, f"{A100}-MIG-1g.10gb", False),
        ({}, "NVIDIA-A100-SXM4-40GB", False),
        ({"sharing": "time-slicing"}, f"{A100}-SHARED", True),
        ({"sharing": "mps"}, f"{A100}-SHARED", True),
        ({"sharing": "time-slicing"}, A100, False),  # its GPUs are whole
        # With a renamed resource, the product keeps its name.
        ({"sharing": "time-slicing", "resource_name": "nvidia.com/gpu.shared"}, A100, True),
        ({"sharing": "mig", "mig_profile": "1g.10gb"}, f"{A100}-MIG-1g.10gb", True),
        ({"sharing": "mig", "mig_profile": "1g.10gb"}, f"{A100}-MIG-3g.40gb", False),
        ({"sharing": "mig", "mig_profile": "1g.10gb+me"}, f"{A100}-MIG-1g.10gb.me", True),
        ({"sharing": "mig", "mig_profile": "1g.10gb"}, A100, False),
        ({"sharing": "mig", "resource_name": "nvidia.com/mig-1g.10gb"}, A100, True),  # strategy mixed
        ({"match_product": f"{A100}-SHARED", "sharing": "mps"}, f"{A100}-SHARED", True),
    ],
)
def test_a_product_is_known_by_the_name_that_its_sharing_gives_it(
    values: dict[str, str], product: str, fits: bool
) -> None:
    assert chosen(pool(**{"match_product": A100} | values), product=product) is fits


def test_the_terms_are_those_that_kubernetes_needs() -> None:
    asked = pool(match_gpu_memory_mib=40_000, match_compute_capability="8.6", node_labels={"zone": "a"})
    always = [
        {"key": "zone", "operator": "In", "values": ["a"]},
        {"key": MEMORY_MIB, "operator": "Gt", "values": ["39999"]},
    ]
    newer = [{"key": MAJOR, "operator": "Gt", "values": ["8"]}]
    as_new = [
        {"key": MAJOR, "operator": "In", "values": ["8"]},
        {"key": MINOR, "operator": "Gt", "values": ["5"]},
    ]
    assert node_affinity(asked, "")["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchExpressions": always + newer}, {"matchExpressions": always + as_new}]
    }


# --- the same as the scheduler

ODD = ["0", "5", "6", "8", "9", "10", "39999", "40000", "+8", "-1", "007", "8_0", "8.5", "x", "٨"]
EDGES = [str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1)]
NUMBERS = st.sampled_from(["", " 8", "8 ", *ODD, *EDGES])
KEYS = st.sampled_from([PRODUCT, MEMORY_MIB, MAJOR, MINOR, ECC, "zone"])
VALUES = NUMBERS | st.sampled_from([A100, f"{A100}-SHARED", f"{A100}-MIG-1g.10gb", "true", "false", "a"])
LABELS = st.dictionaries(KEYS, VALUES)
EXPRESSIONS = st.one_of(
    st.builds(Expression, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        Expression,
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(Expression, KEYS, st.sampled_from(["Gt", "Lt"]), NUMBERS.map(lambda bound: (bound,))),
)
POOLS = st.builds(
    pool,
    node_labels=st.dictionaries(st.just("zone"), st.sampled_from(["a", "b"])),
    match_product=st.sampled_from(["", A100]),
    match_gpu_memory_mib=st.sampled_from([None, 6, 40_000]),
    match_compute_capability=st.sampled_from(["", "8", "8.0", "8.6", "9.0"]),
    match_ecc=st.sampled_from([None, True, False]),
    sharing=st.sampled_from(["exclusive", "mig", "time-slicing", "mps", "hami"]),
    resource_name=st.sampled_from(["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"]),
    mig_profile=st.sampled_from(["", "1g.10gb"]),
)


def scheduler_takes(affinity: dict[str, Any], labels: dict[str, str]) -> bool:
    node = {"metadata": {"name": "n", "labels": labels}}
    return selector_fits({"affinity": {"nodeAffinity": affinity}}, node)


@given(terms=st.lists(st.lists(EXPRESSIONS, min_size=1, max_size=3), min_size=1, max_size=3), labels=LABELS)
def test_terms_mean_what_they_mean_to_the_scheduler(
    terms: list[list[Expression]], labels: dict[str, str]
) -> None:
    ours = tuple(tuple(term) for term in terms)
    required = {"nodeSelectorTerms": selection.manifest(ours)}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    assert selection.chooses(ours, labels) == scheduler_takes(affinity, labels)


@given(by=POOLS, labels=LABELS)
def test_a_node_is_the_pools_exactly_where_its_pods_may_go(by: Pool, labels: dict[str, str]) -> None:
    node = Node(cluster=CLUSTER, name="n", labels=labels)
    assert bool(selection.members(by, [node])) == scheduler_takes(node_affinity(by, "n"), labels)


@given(
    asked=st.tuples(st.integers(1, 12), st.integers(0, 9)),
    has=st.tuples(st.integers(1, 12), st.integers(0, 9)),
)
def test_at_least_is_the_order_of_versions(asked: tuple[int, int], has: tuple[int, int]) -> None:
    terms = selection.at_least(f"{asked[0]}.{asked[1]}")
    assert selection.chooses(terms, {MAJOR: str(has[0]), MINOR: str(has[1])}) == (has >= asked)

"""Doctor's findings on the pools of a cluster: nodes, resources, ways of sharing, and Kueue beside us."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.api import Api
from clusters.doctor import Finding
from clusters.errors import ClusterRefused
from clusters.models import Cluster, Node
from clusters.nodes import kueue, node_labels
from clusters.nodes.kueue import Managed
from quotas.models import Pool
from quotas.pools import doctor, selection
from tests.cast import PRODUCT
from tests.shared.stage import GPU, Stage

CLUSTER = Cluster(slug="main")
A100 = {node_labels.PRODUCT: PRODUCT}


def pool(name: str = "A100", **values: Any) -> Pool:
    return Pool(cluster=CLUSTER, slug=name.lower(), name=name, **({"match_product": PRODUCT} | values))


def node(name: str = "n1", **values: Any) -> Node:
    return Node(**({"cluster": CLUSTER, "name": name, "labels": A100, "allocatable": {GPU: 4}} | values))


def said(pools: list[Pool], nodes: list[Node], managed: tuple[Managed, ...] = ()) -> list[tuple[str, str]]:
    members = {one: selection.members(one, nodes) for one in pools}
    found: list[Finding] = list(doctor.findings(members, nodes, managed))
    return [(finding.level.value, finding.message) for finding in found]


MIG = pool("Mig", sharing="mig", units_per_gpu=7, resource_name="nvidia.com/mig-1g.10gb")


@pytest.mark.parametrize(
    ("pools", "nodes", "expected"),
    [
        ([pool()], [node()], [("ok", "1 pool has matching nodes.")]),
        ([pool(match_compute_capability="9.0")], [node()], [("warn", "No node belongs to the pool A100")]),
        ([pool(match_ecc=True)], [node()], [("warn", "requires ECC"), ("warn", "No node belongs")]),
        ([pool(match_ecc=True)], [node(labels=A100 | {selection.ECC: "true"})], [("ok", "1 pool has")]),
        ([pool()], [node(labels=A100 | {node_labels.STRATEGY: "none"})], [("ok", "1 pool has")]),
        ([pool()], [node(labels=A100 | {node_labels.STRATEGY: "mps"})], [("fail", "n1 say: mps")]),
        ([pool()], [node(labels=A100 | {node_labels.STRATEGY: "time-slicing"})], [("fail", "time-slicing")]),
        (
            [pool(), pool("Large", match_product="")],
            [node()],
            [("ok", "A100 and Large share the GPUs of n1"), ("ok", "2 pools have matching nodes.")],
        ),
        (
            [pool(), pool("Cut", sharing="hami", units_per_gpu=100, gpu_memory_mib=81_920)],
            [node()],
            [("fail", "cut their GPUs in different ways")],
        ),
        # Instances beside whole GPUs are another resource.
        ([pool(), MIG], [node(allocatable={GPU: 2, MIG.resource_name: 14})], [("ok", "2 pools have")]),
        # A fault that the form refuses, in an older pool.
        ([pool(units_per_gpu=2)], [node()], [("fail", "has an invalid setting")]),
    ],
)
def test_what_is_found_about_pools(
    pools: list[Pool], nodes: list[Node], expected: list[tuple[str, str]]
) -> None:
    found = said(pools, nodes)
    assert [level for level, _text in found] == [level for level, _words in expected]
    assert all(words in text for (_level, text), (_, words) in zip(found, expected, strict=True))


def test_a_resource_that_no_node_announces_is_a_failure_and_names_those_announced() -> None:
    [finding] = doctor.findings({pool(): [node(allocatable={"cpu": 1, "nvidia.com/gpu.shared": 8})]}, [], [])
    assert (finding.level, "announces nvidia.com/gpu." in finding.message) == ("fail", True)
    assert "nvidia.com/gpu.shared" in finding.hint


class TestKueue:
    @pytest.mark.parametrize(
        ("managed", "refused"),
        [
            (Managed("lab", GPU, {}), True),
            (Managed("lab", GPU, A100), True),
            (Managed("lab", GPU, {"team": "b"}), False),
            (Managed("lab", "cpu", {}), False),
        ],
    )
    def test_a_pool_that_it_also_manages_is_refused(self, managed: Managed, refused: bool) -> None:
        [(level, text)] = said([pool()], [node()], (managed,))
        assert (level, "ClusterQueue lab" in text) == (("fail", True) if refused else ("ok", False))

    def test_it_is_read_in_the_version_that_it_serves(self) -> None:
        assert (
            kueue.managed(Kueue("v1beta2")) == kueue.managed(Kueue("v1beta1")) == [Managed("lab", GPU, A100)]
        )
        assert kueue.managed(Kueue("")) == []


class Kueue(Api):
    """A cluster with one queue of Kueue, served in one version; or without Kueue."""

    def __init__(self, version: str) -> None:
        self.served = version

    def groups(self) -> set[str]:
        return {"apps", "kueue.x-k8s.io"} if self.served else {"apps"}

    def list(self, kind: str, **_how: Any) -> list[dict[str, Any]]:
        if not kind.endswith(self.served):
            raise ClusterRefused(404, "NotFound", "not found")
        if kind.startswith("ResourceFlavor"):
            return [{"metadata": {"name": "a100"}, "spec": {"nodeLabels": A100}}]
        resources = [{"name": GPU, "nominalQuota": 8}]
        flavors = [{"name": "a100", "resources": resources}, {"name": "unmade", "resources": resources}]
        return [{"metadata": {"name": "lab"}, "spec": {"resourceGroups": [{"flavors": flavors}]}}]


@pytest.mark.django_db
def test_doctor_reads_the_nodes_that_exist_now(stage: Stage) -> None:
    class Live(Api):
        def __init__(self) -> None: ...

        def groups(self) -> set[str]:
            return set()

        def list(self, kind: str, **_how: Any) -> list[dict[str, Any]]:
            if kind == "RuntimeClass":
                return []
            assert kind == "Node"
            return [{"metadata": {"name": "new", "labels": A100}, "status": {"allocatable": {GPU: "1"}}}]

    found = doctor.findings_about(stage.cast.cluster, Live())
    assert [finding.level.value for finding in found] == ["ok"]


def test_a_runtime_class_that_is_not_there_is_a_failure_and_names_those_that_are() -> None:
    [finding] = doctor.without_runtime([pool(runtime_class="nvidia"), pool("Plain")], ["gvisor"])
    assert (finding.level, "the runtime class nvidia" in finding.message) == ("fail", True)
    assert "gvisor" in finding.hint

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


def test_pools_with_nodes_that_give_what_they_promise_are_well() -> None:
    assert said([pool()], [node()]) == [("ok", "1 pool has matching nodes.")]


def test_a_pool_that_no_node_belongs_to_is_said() -> None:
    [(level, text)] = said([pool(match_compute_capability="9.0")], [node()])
    assert (level, text) == ("warn", "No node belongs to the pool A100: nothing starts there.")


def test_a_resource_that_no_node_announces_is_a_failure_and_names_what_there_is() -> None:
    [finding] = doctor.findings({pool(): [node(allocatable={"cpu": 1, "nvidia.com/gpu.shared": 8})]}, [], [])
    assert (finding.level, "announces nvidia.com/gpu." in finding.message) == ("fail", True)
    assert "nvidia.com/gpu.shared" in finding.hint


def test_ecc_is_asked_for_and_no_node_is_labelled() -> None:
    levels = [level for level, text in said([pool(match_ecc=True)], [node()]) if "ECC" in text]
    assert levels == ["warn"]
    labelled = node(labels=A100 | {selection.ECC: "true"})
    assert [level for level, _text in said([pool(match_ecc=True)], [labelled])] == ["ok"]


@pytest.mark.parametrize(("strategy", "level"), [("none", "ok"), ("time-slicing", "fail"), ("mps", "fail")])
def test_replicas_are_not_counted_as_whole_gpus(strategy: str, level: str) -> None:
    [(found, _text)] = said([pool()], [node(labels=A100 | {node_labels.STRATEGY: strategy})])
    assert found == level


def test_two_pools_may_share_gpus_and_that_is_said() -> None:
    found = said([pool(), pool("Large", match_product="")], [node()])
    assert ("ok", "A100 and Large share the GPUs of n1; each is given out once.") in found


def test_two_pools_cut_no_node_in_two_ways() -> None:
    cut = pool("Cut", sharing="hami", units_per_gpu=100, gpu_memory_mib=81_920)
    assert "fail" in [level for level, _text in said([pool(), cut], [node()])]
    # Instances beside whole GPUs are another resource.
    mig = pool("Mig", sharing="mig", units_per_gpu=7, resource_name="nvidia.com/mig-1g.10gb")
    both = node(allocatable={GPU: 2, "nvidia.com/mig-1g.10gb": 14})
    assert [level for level, _text in said([pool(), mig], [both])] == ["ok"]


def test_a_fault_that_the_form_would_refuse_is_said_of_older_pools() -> None:
    assert ("fail", True) in [
        (level, "has an invalid setting" in text) for level, text in said([pool(units_per_gpu=2)], [node()])
    ]


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
def test_doctor_asks_for_what_is_there_now() -> None:
    stage = Stage()

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

"""Tests of doctor's findings about nodes, their GPUs and device plugins."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from clusters.api import Api
from clusters.doctor import nodes
from clusters.nodes.inventory import node_values
from tests.clusters.doctor.told import Said, levels, node, of_nodes


class TestNodes:
    def test_no_node_that_is_ready_is_missing(self) -> None:
        assert levels(of_nodes(nodes.nodes, node("False"))) == ["fail"]

    def test_gpus_are_counted_by_kind(self) -> None:
        both = [node(**{"nvidia.com/gpu": "4"}), node(**{"nvidia.com/gpu": "4", "cpu": "8"})]
        assert of_nodes(nodes.nodes, *both)[1] == ("ok", "GPUs: 8 × nvidia.com/gpu (T4).")

    def test_no_gpu_is_a_warning(self) -> None:
        plain = node(cpu="8")
        plain["metadata"]["labels"] = {}
        assert levels(of_nodes(nodes.nodes, plain)) == ["ok", "warn"]

    def test_labels_without_gpus_and_gpus_without_labels_are_named(self) -> None:
        hidden, bare = node("True", "", "hidden"), node("True", "", "bare", **{"nvidia.com/gpu": "4"})
        bare["metadata"]["labels"] = {}
        found = of_nodes(nodes.nodes, hidden, bare)
        assert ("fail", "hidden have GPUs according to their labels, but announce none.") in found
        assert ("warn", "bare have no labels for the memory and kind of their GPUs.") in found

    def test_a_gpu_that_the_plugin_holds_for_broken_is_told(self) -> None:
        one = node(**{"nvidia.com/gpu": "3"})
        one["status"]["capacity"] = {"nvidia.com/gpu": "4"}
        assert ("warn", "The device plugin marked some GPUs of n as broken.") in of_nodes(nodes.nodes, one)


class TestPlugins:
    OURS: ClassVar = {"name": "nvidia-device-plugin-ds"}
    HAMI: ClassVar = {"app.kubernetes.io/component": "hami-device-plugin"}

    def told(self, *pods: dict[str, Any]) -> list[tuple[str, str]]:
        known = [node_values(node("True", "", name, **{"nvidia.com/gpu": "4"})) for name in ("n1", "n2")]
        found = nodes.plugins(cast(Api, Said(Pod=list(pods))), known)
        return [(finding.level.value, finding.message) for finding in found]

    def test_one_version_everywhere_is_well(self) -> None:
        pods = [plugin(name, self.OURS) for name in ("n1", "n2")]
        assert self.told(*pods) == [("ok", "k8s-device-plugin v0.17.0 runs on 2 nodes.")]

    def test_versions_that_differ_nodes_without_it_and_pods_that_are_not_ready(self) -> None:
        assert levels(self.told(plugin("n1", self.OURS), plugin("n2", self.OURS, tag="v0.16.0"))) == ["warn"]
        assert self.told(plugin("n1", self.OURS, ready="False"))[1:] == [
            ("fail", "k8s-device-plugin is not ready on n1: GPUs there cannot be used."),
            ("warn", "No device plugin runs on n2, which have GPUs."),
        ]

    def test_two_on_one_node_hand_out_the_same_gpus(self) -> None:
        pods = [plugin("n1", self.OURS), plugin("n2", self.OURS), plugin("n2", self.HAMI)]
        assert ("fail", "On n2, HAMi, k8s-device-plugin both offer the same GPUs.") in self.told(*pods)


def plugin(on: str, labels: dict[str, str], *, tag: str = "v0.17.0", ready: str = "True") -> dict[str, Any]:
    return {
        "metadata": {"name": f"plugin-{on}", "labels": labels},
        "spec": {"nodeName": on, "containers": [{"image": f"lab:5000/plugin:{tag}"}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }

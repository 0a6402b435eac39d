"""Tests of doctor's findings about nodes that do not run the same versions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.doctor import agreement, version
from clusters.nodes.inventory import node_values
from tests.clusters.doctor.told import levels, node, of_nodes


class TestAgreement:
    def nodes(self, **changed: dict[str, str]) -> list[dict[str, Any]]:
        """Return three equal nodes, with the given changes on n3."""
        same = {
            "kubeletVersion": "v1.36.2",
            "kernelVersion": "6.1.0",
            "containerRuntimeVersion": "containerd",
        }
        found = [node("True", "", name) for name in ("n1", "n2", "n3")]
        for body in found:
            last = body is found[-1]
            body["status"]["nodeInfo"] = same | (changed.get("system", {}) if last else {})
            driver = {"nvidia.com/cuda.driver-version.full": "550.54.15"}
            body["metadata"]["labels"] |= driver | (changed.get("labels", {}) if last else {})
        return found

    def test_nodes_that_run_the_same_are_one_line(self) -> None:
        assert levels(of_nodes(agreement.agreement, *self.nodes())) == ["ok"]

    @pytest.mark.parametrize(
        ("changed", "text"),
        [
            (
                {"system": {"kernelVersion": "5.15.0"}},
                "Kernels differ: most nodes have 6.1.0, but 5.15.0 on n3.",
            ),
            (
                {"labels": {"nvidia.com/cuda.driver-version.full": "535.1"}},
                "NVIDIA drivers differ: most nodes have 550.54.15, but 535.1 on n3.",
            ),
        ],
        ids=["a kernel", "a driver"],
    )
    def test_the_node_that_differs_is_named(self, changed: dict[str, dict[str, str]], text: str) -> None:
        assert of_nodes(agreement.agreement, *self.nodes(**changed)) == [("warn", text)]

    def test_a_kubelet_newer_than_the_api_or_far_behind_it_is_refused(self) -> None:
        old = self.nodes(system={"kubeletVersion": "v1.32.9"})
        seen = [node_values(body) for body in old]
        assert [f.message for f in version.skew("v1.36.2", seen)] == [
            "The kubelets of n3 are too old for the cluster's API (v1.36.2)."
        ]
        assert [f.level.value for f in version.skew("v1.35.0", seen)] == ["fail"]
        assert list(version.skew("v1.36.2", seen[:2])) == []

    def test_a_clock_that_is_ahead_is_named(self) -> None:
        fast = node("True", "", "fast")
        soon = (timezone.now() + timedelta(minutes=5)).isoformat()
        fast["status"]["conditions"][0]["lastHeartbeatTime"] = soon
        (finding,) = agreement.clocks([fast, node()])
        assert finding.message.startswith("The clocks of fast are ahead")

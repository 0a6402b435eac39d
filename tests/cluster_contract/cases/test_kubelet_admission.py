"""Pods that a kubelet refuses although they were bound to its node without a scheduler."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj


@pytest.fixture
def node(kube: Kube) -> str:
    """Name of a node with a real kubelet, not only a script that speaks for it."""
    nodes: list[Obj] = kube.get("/api/v1/nodes")["items"]
    ports = {n["metadata"]["name"]: n["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] for n in nodes}
    return next(name for name, port in ports.items() if port)


def bind(
    kube: Kube, space: str, node: str, image: str, requests: dict[str, str] | None = None, **spec: Any
) -> Obj:
    """Create a pod on the node, wait until it failed, and return its status."""
    container = {"name": "main", "image": image, "resources": {"requests": requests or {}}}
    body = {"metadata": {"name": "p"}, "spec": {"nodeName": node, "containers": [container], **spec}}
    kube.create(f"{space}/pods", body)
    found: Obj = kube.until(f"{space}/pods/p", lambda o: o["status"]["phase"] == "Failed")["status"]
    return found


def test_a_pod_that_asks_for_more_than_there_is_is_rejected(
    kube: Kube, space: str, node: str, image: str
) -> None:
    status = bind(kube, space, node, image, {"cpu": "1000"})
    assert status["reason"] == "OutOfcpu"
    message = status["message"].removeprefix("Pod was rejected: ")
    assert message.startswith("Node didn't have enough resource: cpu, requested: 1000000, used: ")
    assert "conditions" not in status
    events = kube.until(f"{space}/events", lambda o: o["items"])["items"]
    assert [(e["type"], e["reason"], e["message"]) for e in events] == [("Warning", "OutOfcpu", message)]


def test_a_pod_that_selects_another_node_is_rejected(kube: Kube, space: str, node: str, image: str) -> None:
    status = bind(kube, space, node, image, nodeSelector={"test/no": "node"})
    assert status["reason"] == "NodeAffinity"
    why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert status["message"] == f"Pod was rejected: {why}"

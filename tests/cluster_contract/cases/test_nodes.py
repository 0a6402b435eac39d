"""Node lifecycle: what becomes of a Node and its pods when its kubelet reports, falls silent, or never existed.

The nodes are objects of the test's own without a kubelet: the test writes what a kubelet would.
"""

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from devcluster.testing.cluster import running
from devcluster.testing.kube import Kube, Obj

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LONG = 90
"""Seconds: Kubernetes gives a silent node 50, and the pods of a deleted one 40 to 60."""
PREFIX = "node.kubernetes.io/"


IMPATIENT = """
nodes:
  - {name: plain, cpu: 16, memory: 64Gi}
lifecycle: {grace_seconds: 8, startup_seconds: 4, orphan_seconds: 1}
"""


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """Devcluster for this module, which waits for silent nodes only as long as a test can."""
    if given := os.environ.get("BERTH_TEST_KUBECONFIG"):
        yield Kube(Path(given))
    else:
        yield from running(tmp_path_factory.mktemp("nodes"), "--pods", "played", nodes=IMPATIENT)


def slow_in_reality(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.slow(test) if "BERTH_TEST_KUBECONFIG" in os.environ else test


class FakeNode:
    """Node object and, until it falls silent, the lease of its kubelet."""

    def __init__(self, kube: Kube):
        self._kube, self.name = kube, f"node-{uuid.uuid4().hex[:8]}"
        self.path = f"/api/v1/nodes/{self.name}"
        self.made = kube.create("/api/v1/nodes", {"metadata": {"name": self.name}})
        self._silent = threading.Event()
        self._beating = threading.Thread(target=self._beat)

    def join(self) -> "FakeNode":
        """Report the node as ready for the first time, and start to renew its lease."""
        self.say("Ready", "True")
        lease = {
            "metadata": {"name": self.name},
            "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40},
        }
        self._kube.create(LEASES, lease)
        self._beating.start()
        return self

    def _beat(self) -> None:
        while not self._silent.wait(0.7):
            at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            self._kube.call("PATCH", f"{LEASES}/{self.name}", {"spec": {"renewTime": at}}, "merge")

    def fall_silent(self) -> None:
        self._silent.set()
        if self._beating.is_alive():
            self._beating.join()

    def say(self, kind: str, status: str) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        times = {"lastHeartbeatTime": at, "lastTransitionTime": at}
        told = {"type": kind, "status": status, "reason": "Told", "message": "by a test", **times}
        body = {"status": {"conditions": [told]}}
        code, answer = self._kube.call("PATCH", f"{self.path}/status", body, "strategic")
        assert code == 200, answer

    def change(self, spec: Obj) -> None:
        code, answer = self._kube.call("PATCH", self.path, {"spec": spec}, "merge")
        assert code == 200, answer

    def taint(self, *keys: str) -> None:
        self.change({"taints": [{"key": key, "effect": "NoExecute"} for key in keys]})

    def until(self, *taints: tuple[str, str], seconds: float = 60) -> Obj:
        """Wait until the node has exactly these taints, and return it."""

        def settled(node: Any) -> bool:
            return {
                (t["key"].removeprefix(PREFIX), t["effect"]) for t in node["spec"].get("taints", [])
            } == set(taints)

        return dict(self._kube.until(self.path, settled, seconds))

    def remove(self) -> None:
        self.fall_silent()
        self._kube.call("DELETE", self.path)
        self._kube.call("DELETE", f"{LEASES}/{self.name}")


@pytest.fixture
def node(kube: Kube) -> Iterator[FakeNode]:
    made = FakeNode(kube)
    yield made
    made.remove()


@pytest.fixture
def run(kube: Kube, space: str, node: FakeNode, image: str) -> Iterator[Callable[..., str]]:
    """Function that binds a pod to the node, reports it as running, and returns its path."""
    made: list[str] = []

    def create(name: str, tolerations: list[Obj] | None = None) -> str:
        container = {"name": "main", "image": image}
        spec = {"nodeName": node.name, "containers": [container], "tolerations": tolerations or []}
        body = {"metadata": {"name": name}, "spec": spec | {"terminationGracePeriodSeconds": 5}}
        kube.create(f"{space}/pods", body)
        made.append(f"{space}/pods/{name}")
        conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
        status = {"status": {"phase": "Running", "conditions": conditions}}
        assert kube.call("PATCH", f"{made[-1]}/status", status, "strategic")[0] == 200
        return made[-1]

    yield create
    for path in made:
        kube.call("DELETE", path, gracePeriodSeconds="0")


def conditions(obj: Obj) -> dict[str, Obj]:
    return {c["type"]: c for c in obj.get("status", {}).get("conditions", [])}


def bearing(key: str, seconds: int | None = None) -> Obj:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


def going(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def gone(pod: Any) -> bool:
    return bool(pod.get("code") == 404)


def told(kube: Kube, space: str, reason: str) -> list[str]:
    found = kube.get(f"{space}/events", fieldSelector=f"reason={reason}")
    return [event["message"] for event in found["items"]]


def test_a_new_node_takes_nothing_until_the_controller_has_seen_it(node: FakeNode) -> None:
    assert node.made["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node.made["spec"]["taints"] == [{"key": f"{PREFIX}not-ready", "effect": "NoSchedule"}]
    node.until()


def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not(node: FakeNode) -> None:
    node.join().change({"unschedulable": True})
    taint = node.until(("unschedulable", "NoSchedule"))["spec"]["taints"][0]
    assert taint["timeAdded"]
    node.change({"unschedulable": None})
    node.until()


def test_a_node_that_is_not_ready_is_tainted_and_its_pods_stay_ready(
    kube: Kube, node: FakeNode, run: Callable[..., str]
) -> None:
    pod = run("p", [bearing(f"{PREFIX}not-ready")])
    node.join().say("Ready", "False")
    node.until(("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
    assert conditions(kube.get(pod))["Ready"]["status"] == "True"
    node.say("Ready", "True")
    node.until()


def test_a_node_that_is_short_of_something_takes_nothing_new(node: FakeNode) -> None:
    node.join()
    pressures = {
        "DiskPressure": "disk-pressure",
        "MemoryPressure": "memory-pressure",
        "PIDPressure": "pid-pressure",
    }
    for kind, key in pressures.items():
        node.say(kind, "True")
        node.until((key, "NoSchedule"))
        node.say(kind, "False")
        node.until()


def test_a_pod_that_does_not_bear_a_taint_is_deleted_and_told_why(
    kube: Kube, space: str, node: FakeNode, run: Callable[..., str]
) -> None:
    node.join()
    pod = run("p")
    node.taint("test/out")
    found = kube.until(pod, going)
    target = conditions(found)["DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "DeletionByTaintManager")
    assert target["message"] == "Taint manager: deleting due to NoExecute taint"
    namespace = space.rpartition("/")[2]
    events = f"{space}/events?fieldSelector=reason%3DTaintManagerEviction"
    kube.until(events, lambda o: bool(o["items"]))
    assert told(kube, space, "TaintManagerEviction") == [f"Marking for deletion Pod {namespace}/p"]


@pytest.mark.slow
def test_pods_stay_as_long_as_they_bear_a_taint(kube: Kube, node: FakeNode, run: Callable[..., str]) -> None:
    node.join()
    while_, ever = run("while", [bearing("test/out", 5)]), run("ever", [bearing("test/out")])
    node.taint("test/out")
    at_once = run("at-once")
    kube.until(at_once, going)
    assert not going(kube.get(while_))
    kube.until(while_, going)
    assert not going(kube.get(ever))


def test_a_taint_that_goes_in_time_spares_the_pod(
    kube: Kube, space: str, node: FakeNode, run: Callable[..., str]
) -> None:
    node.join()
    pod = run("p", [bearing("test/out", 3600)])
    node.taint("test/out")
    run("witness")  # deleted as soon as the controller acts on the taint
    kube.until(f"{space}/pods/witness", going)
    node.change({"taints": None})
    namespace = space.rpartition("/")[2]
    expected = f"Cancelling deletion of Pod {namespace}/p"
    kube.until(f"{space}/events", lambda o: expected in [e["message"] for e in o["items"]])
    assert not going(kube.get(pod))


def test_of_two_taints_the_shorter_patience_counts(
    kube: Kube, node: FakeNode, run: Callable[..., str]
) -> None:
    node.join()
    pod = run("p", [bearing("test/a", 3600), bearing("test/b", 1)])
    node.taint("test/a", "test/b")
    kube.until(pod, going)


def test_without_a_kubelet_a_pod_stays_pending_and_its_deletion_waits(
    kube: Kube, space: str, node: FakeNode, image: str
) -> None:
    spec = {"nodeName": node.name, "containers": [{"name": "main", "image": image}]}
    path = f"{space}/pods/p"
    kube.create(f"{space}/pods", {"metadata": {"name": "p"}, "spec": spec})
    kube.call("DELETE", path, gracePeriodSeconds="1")
    found = kube.get(path)
    assert (found["status"]["phase"], going(found)) == ("Pending", True)
    kube.call("DELETE", path, gracePeriodSeconds="0")
    assert gone(kube.get(path))


@pytest.mark.slow
@slow_in_reality
def test_a_silent_node_is_unknown_and_its_pods_are_unready(
    kube: Kube, space: str, node: FakeNode, run: Callable[..., str]
) -> None:
    node.join()
    pod = run("p", [bearing(f"{PREFIX}unreachable")])
    soon = run("soon", [bearing(f"{PREFIX}unreachable", 1)])
    node.fall_silent()
    found = node.until(("unreachable", "NoSchedule"), ("unreachable", "NoExecute"), seconds=LONG)
    ready = conditions(found)["Ready"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert ready["message"] == "Kubelet stopped posting node status."
    never = conditions(found)["DiskPressure"]
    assert (never["status"], never["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
    assert never["message"] == "Kubelet never posted node status."
    lost = kube.until(pod, lambda o: conditions(o)["Ready"]["status"] == "False")
    assert (lost["status"]["phase"], conditions(lost)["ContainersReady"]["status"]) == ("Running", "True")
    kube.until(f"{space}/events", lambda o: "Node is not ready" in [e["message"] for e in o["items"]])
    assert told(kube, space, "NodeNotReady")[0] == "Node is not ready"
    kube.until(soon, going)
    assert not gone(kube.get(soon))
    node.say("Ready", "True")
    node.until()
    assert not going(kube.get(pod))


@pytest.mark.slow
@slow_in_reality
def test_a_node_for_which_nobody_ever_spoke_is_unknown(node: FakeNode) -> None:
    found = node.until(("unreachable", "NoSchedule"), ("unreachable", "NoExecute"), seconds=LONG)
    kinds = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"]
    assert [(c["type"], c["status"], c["reason"]) for c in found["status"]["conditions"]] == [
        (kind, "Unknown", "NodeStatusNeverUpdated") for kind in kinds
    ]


@pytest.mark.slow
@slow_in_reality
def test_pods_of_a_deleted_node_fail_and_go(
    kube: Kube, space: str, node: FakeNode, run: Callable[..., str]
) -> None:
    node.join()
    pod = run("p")
    since = kube.get(f"{space}/pods")["metadata"]["resourceVersion"]
    node.remove()
    kube.until(pod, gone, seconds=LONG)
    last = kube.watch(f"{space}/pods", resourceVersion=since)[-1]
    assert (last["type"], last["object"]["status"]["phase"]) == ("DELETED", "Failed")
    target = conditions(last["object"])["DisruptionTarget"]
    assert (target["reason"], target["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


@slow_in_reality
def test_only_a_node_out_of_service_gives_up_the_pods_that_are_to_go(
    kube: Kube, node: FakeNode, run: Callable[..., str]
) -> None:
    node.join()
    pod = run("p", [bearing(f"{PREFIX}not-ready")])
    kube.call("DELETE", pod)
    node.say("Ready", "False")
    found = node.until(("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
    assert going(kube.get(pod))
    out = {"key": f"{PREFIX}out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    node.change({"taints": [*found["spec"]["taints"], out]})
    kube.until(pod, gone, seconds=LONG)

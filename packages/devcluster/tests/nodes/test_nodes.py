"""Kubelets that fall silent, come back, run short or break: the effect on their nodes and pods."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, is_gone, is_ready, pod, running, stateful_set
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.shells import PROCESSES, process_pods

NODES = """
nodes:
  - {name: gpu, count: 3, cpu: 16, memory: 64Gi,
     gpus: {product: Tesla-T4, count: 2, memory_mib: 15360, compute: "7.5", sharing: time-slicing, replicas: 4}}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
lifecycle: {grace_seconds: 0.5, startup_seconds: 0.5, orphan_seconds: 0.5}
"""
NODE = "/api/v1/nodes/gpu-1"
UNREACHABLE = "node.kubernetes.io/unreachable"
FOR_EVER = [{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}]


@pytest.fixture
def space(cluster: DevCluster) -> Iterator[str]:
    path = cluster.fresh()
    yield path
    cluster.call("DELETE", "/_faults")
    cluster.until(NODE, lambda node: ready(node) == "True" and not node["spec"].get("taints"))
    cluster.call("DELETE", path)


def fault(cluster: DevCluster, **spec: object) -> int:
    code, made = cluster.call("POST", "/_faults", {"node": "gpu-1", **spec})
    assert code == 201, made
    return int(made["id"])


def end(cluster: DevCluster, fault_id: int) -> None:
    cluster.call("DELETE", f"/_faults/{fault_id}")


def conditions(obj: Obj) -> dict[str, Obj]:
    return {c["type"]: c for c in obj.get("status", {}).get("conditions", [])}


def ready(obj: Obj) -> str:
    return str(conditions(obj).get("Ready", {}).get("status", ""))


def taints(node: Obj) -> set[tuple[str, str]]:
    return {(t["key"].rpartition("/")[2], t["effect"]) for t in node["spec"].get("taints", [])}


def on_node(name: str, **spec: object) -> Obj:
    return pod(name, nodeName="gpu-1", **spec)


def test_a_kubelet_says_how_its_node_is_and_renews_its_lease(cluster: DevCluster, space: str) -> None:
    node = cluster.get(NODE)
    told = [(c["type"], c["status"], c["reason"]) for c in node["status"]["conditions"]]
    assert told == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.2"
    lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/gpu-1")
    assert lease["spec"]["holderIdentity"] == "gpu-1"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_a_node_that_falls_silent_is_unknown_tainted_and_its_pods_unready(
    cluster: DevCluster, space: str
) -> None:
    cluster.create(f"{space}/pods", on_node("p", tolerations=FOR_EVER))
    cluster.until(f"{space}/pods/p", is_ready)
    fault(cluster, state="unreachable")
    node = cluster.until(
        NODE, lambda n: taints(n) == {("unreachable", e) for e in ("NoSchedule", "NoExecute")}
    )
    assert {(c["status"], c["reason"], c["message"]) for c in conditions(node).values()} == {
        ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    }
    found = cluster.until(f"{space}/pods/p", lambda o: ready(o) == "False")
    assert (found["status"]["phase"], conditions(found)["ContainersReady"]["status"]) == ("Running", "True")
    code, refused = cluster.call("GET", f"{space}/pods/p/log")
    assert (code, refused["message"][-11:]) == (500, "i/o timeout")
    told = cluster.until(f"{space}/events", lambda o: "NodeNotReady" in str(o))["items"]
    assert [e["message"] for e in told if e["reason"] == "NodeNotReady"] == ["Node is not ready"]


def test_a_node_that_is_told_to_be_ready_again_has_no_fault_left(cluster: DevCluster, space: str) -> None:
    fault(cluster, ready=False)
    fault(cluster, pressure="memory")
    cluster.until(NODE, lambda n: ready(n) == "Unknown")
    fault(cluster, ready=True)
    node = cluster.until(NODE, lambda n: ready(n) == "True" and not taints(n))
    assert conditions(node)["MemoryPressure"]["status"] == "False"
    assert cluster.get("/_faults")["faults"] == []


@pytest.mark.slow
def test_what_was_deleted_while_its_node_was_away_ends_when_it_is_back_and_the_rest_goes_on(
    cluster: DevCluster, space: str
) -> None:
    for name in ("goes", "stays", "forced"):
        cluster.create(f"{space}/pods", on_node(name, tolerations=FOR_EVER))
        cluster.until(f"{space}/pods/{name}", is_ready)
    away = fault(cluster, state="unreachable")
    cluster.until(f"{space}/pods/goes", lambda o: ready(o) == "False")
    cluster.call("DELETE", f"{space}/pods/goes", gracePeriodSeconds="1")
    cluster.call("DELETE", f"{space}/pods/forced", gracePeriodSeconds="0")
    time.sleep(1.5)
    assert cluster.get(f"{space}/pods/goes")["metadata"]["deletionTimestamp"]
    assert is_gone(cluster.get(f"{space}/pods/forced"))
    end(cluster, away)
    cluster.until(f"{space}/pods/goes", is_gone)
    found = cluster.until(f"{space}/pods/stays", is_ready)
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0
    node = cluster.until(NODE, lambda n: not taints(n))
    assert conditions(node)["Ready"]["reason"] == "KubeletReady"


@pytest.mark.slow
def test_a_set_on_a_lost_node_gets_its_next_pod_only_once_an_admin_says_the_node_is_off(
    cluster: DevCluster, space: str
) -> None:
    sets = space.replace("/api/v1", "/apis/apps/v1") + "/statefulsets"
    body = stateful_set("ws")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-1"}
    cluster.create(sets, body)
    first = cluster.until(f"{space}/pods/ws-0", is_ready)
    fault(cluster, state="off")
    cluster.until(NODE, lambda n: ready(n) == "Unknown")
    cluster.call("DELETE", f"{space}/pods/ws-0", gracePeriodSeconds="1")
    time.sleep(1.5)
    assert cluster.get(f"{space}/pods/ws-0")["metadata"]["uid"] == first["metadata"]["uid"]
    off = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    cluster.call("PATCH", NODE, {"spec": {"taints": [off]}}, "merge")
    cluster.until(
        f"{space}/pods/ws-0",
        lambda o: "uid" in o["metadata"] and o["metadata"]["uid"] != first["metadata"]["uid"],
    )
    cluster.call("PATCH", NODE, {"spec": {"taints": None}}, "merge")


def test_a_node_that_lost_its_power_comes_back_without_its_processes(cluster: DevCluster, space: str) -> None:
    cluster.create(f"{space}/pods", on_node("p", tolerations=FOR_EVER))
    cluster.until(f"{space}/pods/p", is_ready)
    off = fault(cluster, state="off")
    cluster.until(f"{space}/pods/p", lambda o: ready(o) == "False")
    assert cluster.get(f"{space}/pods/p")["status"]["phase"] == "Running"
    end(cluster, off)
    found = cluster.until(f"{space}/pods/p", lambda o: o["status"]["phase"] == "Failed")
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def test_a_node_that_is_not_ready_keeps_its_pods_running_but_is_tainted(
    cluster: DevCluster, space: str
) -> None:
    cluster.create(f"{space}/pods", on_node("p"))
    cluster.until(f"{space}/pods/p", is_ready)
    fault(cluster, state="not-ready")
    node = cluster.until(NODE, lambda n: taints(n) == {("not-ready", e) for e in ("NoSchedule", "NoExecute")})
    assert conditions(node)["Ready"]["reason"] == "KubeletNotReady"
    assert is_ready(cluster.get(f"{space}/pods/p"))


@pytest.mark.slow
def test_a_node_that_is_deleted_takes_its_pods_with_it_and_registers_again(
    cluster: DevCluster, space: str
) -> None:
    cluster.create(f"{space}/pods", on_node("p"))
    cluster.until(f"{space}/pods/p", is_ready)
    before = cluster.get(NODE)["metadata"]["uid"]
    since = cluster.get(f"{space}/pods")["metadata"]["resourceVersion"]
    gone = fault(cluster, state="deleted")
    cluster.until(f"{space}/pods/p", is_gone)
    last = cluster.watch(f"{space}/pods", resourceVersion=since)[-1]
    assert (last["type"], last["object"]["status"]["phase"]) == ("DELETED", "Failed")
    assert conditions(last["object"])["DisruptionTarget"]["message"] == "PodGC: node no longer exists"
    assert is_gone(cluster.get(NODE))
    end(cluster, gone)
    assert cluster.until(NODE, lambda n: ready(n) == "True")["metadata"]["uid"] != before


def test_a_dead_gpu_leaves_what_is_allocatable_and_the_pods_that_run(cluster: DevCluster, space: str) -> None:
    body = on_node("p")
    body["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    cluster.create(f"{space}/pods", body)
    cluster.until(f"{space}/pods/p", is_ready)
    dead = fault(cluster, dead_gpus=1)
    node = cluster.until(NODE, lambda n: n["status"]["allocatable"]["nvidia.com/gpu"] == "4")
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"
    assert is_ready(cluster.get(f"{space}/pods/p"))
    end(cluster, dead)
    cluster.until(NODE, lambda n: n["status"]["allocatable"]["nvidia.com/gpu"] == "8")


def test_with_no_node_left_nothing_is_evicted(cluster: DevCluster, space: str) -> None:
    for name in ("gpu-2", "gpu-3"):
        cluster.call("POST", "/_faults", {"node": name, "state": "unreachable"})
    fault(cluster, state="unreachable")
    nodes = cluster.until("/api/v1/nodes", lambda o: all(ready(n) == "Unknown" for n in o["items"]))
    cluster.until(
        "/api/v1/nodes", lambda o: all(taints(n) == {("unreachable", "NoSchedule")} for n in o["items"])
    )
    assert len(nodes["items"]) == 3


def test_a_pod_bound_to_a_node_that_nobody_plays_stays_pending(cluster: DevCluster, space: str) -> None:
    cluster.create("/api/v1/nodes", {"metadata": {"name": "empty"}})
    cluster.create(f"{space}/pods", pod("p", nodeName="empty"))
    time.sleep(0.5)
    assert "startTime" not in cluster.get(f"{space}/pods/p")["status"]
    cluster.call("DELETE", "/api/v1/nodes/empty")


@pytest.mark.slow
def test_patience_begins_when_the_node_falls_silent(tmp_path: Path) -> None:
    nodes = NODES.replace("{grace_seconds: 0.5,", "{grace_seconds: 1.5,")
    for cluster in running(tmp_path, "--pods", "played", nodes=nodes):
        time.sleep(2)
        began = time.monotonic()
        fault(cluster, state="unreachable")
        cluster.until(NODE, lambda n: ready(n) == "Unknown")
        assert time.monotonic() - began > 1.4


@pytest.mark.slow
def test_nodes_of_others_outlive_a_restart_and_those_of_the_file_are_ready_at_once(folder: Path) -> None:
    cluster = DevCluster(folder, "--pods", "played", nodes=NODES)
    cluster.start()
    cluster.create("/api/v1/nodes", {"metadata": {"name": "empty"}})
    cluster.call("POST", "/_faults", {"node": "gpu-1", "state": "unreachable"})
    cluster.until(NODE, lambda n: ready(n) == "Unknown")
    cluster.end()
    cluster.start()
    try:
        assert ready(cluster.get(NODE)) == "True"
        cluster.until(NODE, lambda n: not taints(n))
        assert cluster.get("/api/v1/nodes/empty")["kind"] == "Node"
    finally:
        cluster.end()


def test_a_full_disk_ends_pods_in_the_kubelets_words_and_takes_nothing_new(
    cluster: DevCluster, space: str
) -> None:
    cluster.create(f"{space}/pods", on_node("p"))
    cluster.until(f"{space}/pods/p", is_ready)
    full = fault(cluster, pressure="disk")
    found = cluster.until(f"{space}/pods/p", lambda o: o["status"]["phase"] == "Failed")
    assert found["status"]["reason"] == "Evicted"
    assert found["status"]["message"].startswith(
        "The node was low on resource: ephemeral-storage. Threshold quantity: "
    )
    assert conditions(found)["DisruptionTarget"]["reason"] == "TerminationByKubelet"
    told = cluster.until(f"{space}/events?fieldSelector=reason%3DEvicted", lambda o: bool(o["items"]))[
        "items"
    ]
    assert [(e["type"], e["message"]) for e in told] == [("Warning", found["status"]["message"])]
    node = cluster.until(NODE, lambda n: taints(n) == {("disk-pressure", "NoSchedule")})
    assert conditions(node)["DiskPressure"]["message"] == "kubelet has disk pressure"
    cluster.create(f"{space}/pods", on_node("late"))
    late = cluster.until(f"{space}/pods/late", lambda o: o["status"]["phase"] == "Failed")
    assert late["status"]["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "
    end(cluster, full)
    cluster.until(NODE, lambda n: not taints(n))
    wanted = {"NodeHasDiskPressure", "NodeHasNoDiskPressure", "EvictionThresholdMet"}
    events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dgpu-1"
    cluster.until(events, lambda o: wanted <= {e["reason"] for e in o["items"]})


@pytest.mark.slow
@process_pods
def test_processes_outlive_a_cut_cable_and_not_a_power_loss(tmp_path: Path) -> None:
    nodes = NODES.replace("count: 3", "count: 1").replace("name: gpu", "name: gpu-1")
    for cluster in running(tmp_path, *PROCESSES, nodes=nodes):
        space = cluster.fresh()
        body = on_node("p", tolerations=FOR_EVER, securityContext={"runAsUser": 1000, "runAsGroup": 1000})
        ticking = ["sh", "-c", "while :; do echo tick; sleep 0.1; done"]
        body["spec"]["containers"][0] |= {"image": "local/venv:1", "command": ticking}
        cluster.create(f"{space}/pods", body)
        uid = cluster.until(f"{space}/pods/p", is_ready)["metadata"]["uid"]
        log = next((cluster.state / "logs" / uid).rglob("*.log"))
        cut = fault(cluster, state="unreachable")
        cluster.until(f"{space}/pods/p", lambda o: ready(o) == "False")
        until(partial(grows, log))
        end(cluster, cut)
        found = cluster.until(f"{space}/pods/p", is_ready)
        assert found["status"]["containerStatuses"][0]["restartCount"] == 0
        fault(cluster, state="off")
        cluster.until(f"{space}/pods/p", lambda o: ready(o) == "False")
        until(partial(rests, log))  # its last output is still read
        assert cluster.get(f"{space}/pods/p")["status"]["phase"] == "Running"


def grows(file: Path) -> bool:
    before = file.stat().st_size
    time.sleep(0.6)
    return file.stat().st_size > before


def rests(file: Path) -> bool:
    return not grows(file)


def test_a_pod_that_comes_for_a_gpu_that_died_is_not_admitted(cluster: DevCluster, space: str) -> None:
    fault(cluster, dead_gpus=2)
    cluster.until(NODE, lambda n: n["status"]["allocatable"]["nvidia.com/gpu"] == "0")
    body = on_node("p")
    body["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    cluster.create(f"{space}/pods", body)
    found = cluster.until(f"{space}/pods/p", lambda o: o["status"]["phase"] == "Failed")
    assert found["status"]["reason"] == "UnexpectedAdmissionError"
    assert (
        "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"
        in found["status"]["message"]
    )

"""Pods and controllers: StatefulSets, the scheduler's words, quota, Pod Security, claims, load balancers, faults."""

import threading
import time
from collections.abc import Iterator

import pytest

from devcluster.testing.cluster import DevCluster, is_gone, is_ready, pod, stateful_set
from devcluster.testing.kube import Obj
from devcluster.testing.many import Many


@pytest.fixture
def space(cluster: DevCluster) -> Iterator[str]:
    path = cluster.fresh()
    yield path
    cluster.call("DELETE", path)
    # No pod of it holds a GPU any more; the rest waits for a finalizer.
    cluster.until(f"{path}/pods", lambda o: all(p["status"]["phase"] == "Succeeded" for p in o["items"]))


def sets_of(space: str) -> str:
    return space.replace("/api/v1", "/apis/apps/v1") + "/statefulsets"


def test_the_next_pod_of_a_set_comes_only_once_the_last_is_gone(cluster: DevCluster, space: str) -> None:
    cluster.create(sets_of(space), stateful_set("ws"))
    first = cluster.until(f"{space}/pods/ws-0", is_ready)
    since = cluster.get(f"{space}/pods")["metadata"]["resourceVersion"]

    def next_is_ready(event: Obj) -> bool:
        return event["object"]["metadata"]["uid"] != first["metadata"]["uid"] and is_ready(event["object"])

    events = cluster.watch_until(
        f"{space}/pods", since, next_is_ready, lambda: cluster.call("DELETE", f"{space}/pods/ws-0")
    )
    seen = [(e["type"], e["object"]["metadata"]["uid"] == first["metadata"]["uid"]) for e in events]
    gone = seen.index(("DELETED", True))
    assert all(old for _, old in seen[: gone + 1])
    assert ("ADDED", False) in seen[gone + 1 :]
    last = events[gone]["object"]
    assert last["status"]["phase"] == "Succeeded"


def test_a_pod_with_a_finalizer_ends_and_stays_and_has_no_successor(cluster: DevCluster, space: str) -> None:
    cluster.create(sets_of(space), stateful_set("ws", finalizers=["berth.dev/end-seen"]))
    first = cluster.until(f"{space}/pods/ws-0", is_ready)
    assert first["metadata"]["finalizers"] == ["berth.dev/end-seen"]
    cluster.call("DELETE", f"{space}/pods/ws-0")
    ended = cluster.until(f"{space}/pods/ws-0", lambda o: o["status"]["phase"] == "Succeeded")
    time.sleep(0.3)
    assert cluster.get(f"{space}/pods/ws-0")["metadata"]["uid"] == ended["metadata"]["uid"]
    cluster.call("PATCH", f"{space}/pods/ws-0", {"metadata": {"finalizers": None}}, "merge")
    second = cluster.until(f"{space}/pods/ws-0", is_ready)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


def test_what_a_set_owns_goes_with_it_in_the_foreground(cluster: DevCluster, space: str) -> None:
    made = cluster.create(sets_of(space), stateful_set("ws"))
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ws", "uid": made["metadata"]["uid"]}
    cluster.create(f"{space}/secrets", {"metadata": {"name": "s", "ownerReferences": [owner]}})
    cluster.until(f"{space}/pods/ws-0", is_ready)
    cluster.call("DELETE", f"{sets_of(space)}/ws", {"propagationPolicy": "Foreground"})
    cluster.until(f"{sets_of(space)}/ws", is_gone)
    assert is_gone(cluster.get(f"{space}/pods/ws-0"))
    cluster.until(f"{space}/secrets/s", is_gone)


def gpus(name: str, count: int, **spec: object) -> dict[str, object]:
    body = pod(name, **spec)
    body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": str(count)}}
    return body


def refusal_of(cluster: DevCluster, path: str) -> str:
    found = cluster.until(path, lambda o: bool(o["status"].get("conditions")))
    return str(found["status"]["conditions"][0]["message"])


def test_the_scheduler_says_why_no_node_fits(cluster: DevCluster, space: str) -> None:
    cluster.create(f"{space}/pods", gpus("many", 9))
    assert refusal_of(cluster, f"{space}/pods/many") == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption:"
        " 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    [event] = cluster.get(f"{space}/events", fieldSelector="involvedObject.name=many")["items"]
    assert (event["reason"], event["firstTimestamp"]) == ("FailedScheduling", None)
    assert event["eventTime"]


@pytest.mark.parametrize(("bound", "fits"), [("81919", True), ("81920", False), ("40.5", False)])
def test_gt_is_strict_and_knows_integers_alone(
    cluster: DevCluster, space: str, bound: str, fits: bool
) -> None:
    term = {"matchExpressions": [{"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": [bound]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cluster.create(f"{space}/pods", gpus("p", 1, affinity={"nodeAffinity": required}))
    found = cluster.until(f"{space}/pods/p", lambda o: bool(o["status"].get("conditions")))
    assert (found["spec"].get("nodeName") is not None) is fits


def test_a_pod_waits_for_room_and_takes_it(cluster: DevCluster, space: str) -> None:
    for n in range(2):
        cluster.create(f"{space}/pods", gpus(f"full-{n}", 8))
        cluster.until(f"{space}/pods/full-{n}", is_ready)
    cluster.create(f"{space}/pods", gpus("next", 1))
    assert "2 No preemption victims found for incoming pod." in refusal_of(cluster, f"{space}/pods/next")
    cluster.call("DELETE", f"{space}/pods/full-0")
    cluster.until(f"{space}/pods/next", is_ready)


def test_a_claim_of_the_default_class_binds_on_the_pods_node(cluster: DevCluster, space: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.create(f"{space}/persistentvolumeclaims", {"metadata": {"name": "d"}, "spec": spec})
    time.sleep(0.2)
    assert cluster.get(f"{space}/persistentvolumeclaims/d")["status"]["phase"] == "Pending"
    cluster.create(
        f"{space}/pods", pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}])
    )
    node = cluster.until(f"{space}/pods/p", is_ready)["spec"]["nodeName"]
    claim = cluster.get(f"{space}/persistentvolumeclaims/d")
    assert claim["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
    }
    volume = cluster.get(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
    terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == [node]
    grown = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    cluster.call("PATCH", f"{space}/persistentvolumeclaims/d", grown, "merge")
    cluster.until(f"{space}/persistentvolumeclaims/d", lambda o: o["status"]["capacity"]["storage"] == "2Gi")
    cluster.call("DELETE", f"{space}/persistentvolumeclaims/d")
    assert "deletionTimestamp" in cluster.get(f"{space}/persistentvolumeclaims/d")["metadata"]
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/persistentvolumeclaims/d", is_gone)


def test_a_dry_run_of_a_pod_meets_quota_and_pod_security(cluster: DevCluster, space: str) -> None:
    hard = {"requests.nvidia.com/gpu": "2"}
    cluster.create(f"{space}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    code, told = cluster.call("POST", f"{space}/pods", gpus("p", 3), dryRun="All")
    assert (code, told["message"]) == (
        403,
        (
            'pods "p" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=3,'
            " used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=2"
        ),
    )
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    cluster.call("PATCH", space, label, "merge")
    code, told = cluster.call("POST", f"{space}/pods", gpus("p", 1), dryRun="All")
    assert code == 403
    assert 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false' in told["message"]


def test_a_load_balancer_has_an_address_of_its_own(cluster: DevCluster, space: str) -> None:
    spec = {"type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 22, "targetPort": 2222}]}
    for name in ("a", "b"):
        cluster.create(f"{space}/services", {"metadata": {"name": name}, "spec": spec})
    found = [
        cluster.until(f"{space}/services/{n}", lambda o: bool(o["status"]["loadBalancer"]))["status"][
            "loadBalancer"
        ]
        for n in ("a", "b")
    ]
    addresses = {f["ingress"][0]["ip"] for f in found}
    assert len(addresses) == 2
    assert all(a.startswith("127.") for a in addresses)


def test_an_image_that_cannot_be_pulled_backs_off_with_the_kubelets_words(
    cluster: DevCluster, space: str
) -> None:
    cluster.call("POST", "/_faults", {"image": "local/broken:1", "error": "no such host"})
    body = pod("p")
    body["spec"]["containers"][0]["image"] = "local/broken:1"
    cluster.create(f"{space}/pods", body)
    for reason in ("ErrImagePull", "ImagePullBackOff"):
        _waits(cluster, f"{space}/pods/p", reason)
    events = cluster.get(f"{space}/events", fieldSelector="involvedObject.name=p,reason=Failed")["items"]
    assert 'Failed to pull image "local/broken:1": no such host' in [e["message"] for e in events]
    cluster.call("DELETE", "/_faults")


def _waits(cluster: DevCluster, path: str, reason: str) -> None:
    cluster.until(path, lambda o: reason in str(o["status"].get("containerStatuses")))


def test_faults_refuse_so_many_times_and_hold_until_released(cluster: DevCluster, space: str) -> None:
    match = {"verb": "create", "resource": "secrets"}
    cluster.call("POST", "/_faults", {"status": 429, "retry_after": 1, "times": 1, "match": match})
    assert cluster.call("POST", f"{space}/secrets", {"metadata": {"name": "s"}})[0] == 429
    _, held = cluster.call("POST", "/_faults", {"hold": True, "match": match})
    waiting = threading.Thread(target=cluster.create, args=(f"{space}/secrets", {"metadata": {"name": "s"}}))
    waiting.start()
    time.sleep(0.2)
    assert is_gone(cluster.get(f"{space}/secrets/s"))
    cluster.call("DELETE", f"/_faults/{held['id']}")
    waiting.join(30)
    assert cluster.get(f"{space}/secrets/s")["type"] == "Opaque"


def test_two_hundred_pods_are_cheap(cluster: DevCluster, space: str) -> None:
    process = Many(cluster)
    before = process.cpu_seconds()  # CPU time, not duration, which depends on other work of this machine
    for n in range(200):
        cluster.create(f"{space}/pods", pod(f"p-{n}"))
    cluster.until(f"{space}/pods", lambda o: len(o["items"]) == 200 and all(map(is_ready, o["items"])))
    assert process.cpu_seconds() - before < 20

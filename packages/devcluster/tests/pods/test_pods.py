"""Pods and controllers: StatefulSets, the scheduler's words, quota, Pod Security, claims, load balancers, faults."""

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


def test_two_hundred_pods_are_cheap(cluster: DevCluster, space: str) -> None:
    process = Many(cluster)
    before = process.cpu_seconds()  # CPU time, not duration, which depends on other work of this machine
    for n in range(200):
        cluster.create(f"{space}/pods", pod(f"p-{n}"))
    cluster.until(f"{space}/pods", lambda o: len(o["items"]) == 200 and all(map(is_ready, o["items"])))
    assert process.cpu_seconds() - before < 20

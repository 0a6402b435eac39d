"""Objects over HTTP: refusals, storage and watches."""

import time

import pytest

from devcluster.kubelet.processes.usage import of_families
from devcluster.resources import KINDS, Kind
from devcluster.testing.cluster import DevCluster, pod
from devcluster.typed.schema import described

BODY = {"metadata": {"name": "one", "labels": {"k": "v"}}, "data": {"a": "1"}}


@pytest.fixture
def maps(cluster: DevCluster) -> str:
    return cluster.fresh() + "/configmaps"


def test_a_watch_from_before_what_is_remembered_is_told_so(cluster: DevCluster, maps: str) -> None:
    made = cluster.create(maps, BODY)
    cluster.call("PATCH", f"{maps}/one", {"data": {"a": "2"}}, "merge")
    cluster.call("POST", "/_faults", {"expire_watches": True})
    events = cluster.watch(maps, count=1, resourceVersion=made["metadata"]["resourceVersion"])
    assert (events[0]["type"], events[0]["object"]["code"]) == ("ERROR", 410)


def test_pages_of_a_moment_that_is_forgotten_expire_and_say_how_to_go_on(
    cluster: DevCluster, maps: str
) -> None:
    for n in range(3):
        cluster.create(maps, {"metadata": {"name": f"c{n}", "labels": {"n": str(n)}}})
    first = cluster.get(maps, limit="1", labelSelector="n")["metadata"]
    cluster.call("DELETE", f"{maps}/c2")
    cluster.call("POST", "/_faults", {"expire_watches": True})
    code, told = cluster.call("GET", maps, labelSelector="n", **{"continue": first["continue"]})
    assert (code, told["reason"]) == (410, "Expired")
    rest = cluster.get(maps, labelSelector="n", **{"continue": told["metadata"]["continue"]})
    assert [o["metadata"]["name"] for o in rest["items"]] == ["c1"]
    code, told = cluster.call(
        "GET", maps, resourceVersion=first["resourceVersion"], resourceVersionMatch="Exact"
    )
    assert (code, told["message"]) == (410, "The resourceVersion for the provided list is too old.")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified)
def test_every_kind_that_kubernetes_has_itself_is_described(kind: Kind) -> None:
    assert described(kind.api_version, kind.kind) or kind.group == "snapshot.storage.k8s.io"


def test_a_namespace_that_waits_for_a_held_pod_costs_no_work(cluster: DevCluster) -> None:
    space = cluster.fresh()
    body = pod("held")
    body["metadata"]["finalizers"] = ["example.org/hold"]
    cluster.create(f"{space}/pods", body)
    cluster.call("DELETE", space)
    cluster.until(f"{space}/pods/held", lambda o: "deletionTimestamp" in o["metadata"], seconds=30)
    assert cluster.process is not None
    before = of_families([cluster.process.pid])[cluster.process.pid].cpu_seconds
    time.sleep(2)
    after = of_families([cluster.process.pid])[cluster.process.pid].cpu_seconds
    cluster.call("PATCH", f"{space}/pods/held", {"metadata": {"finalizers": None}}, "merge")
    assert after - before < 0.5

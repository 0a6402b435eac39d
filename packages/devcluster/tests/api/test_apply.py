"""Server-side apply: ownership of fields, and the conflicts and removals that follow from it."""

import pytest

from devcluster.testing.cluster import DevCluster, stateful_set
from devcluster.testing.kube import Obj


@pytest.fixture
def path(cluster: DevCluster) -> str:
    return cluster.fresh() + "/configmaps/app"


def app(**data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": data}


def test_an_object_that_is_gone_is_not_made_again_under_its_old_uid(cluster: DevCluster, path: str) -> None:
    body = app(a="1")
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    code, told = cluster.apply(path, body)
    assert (code, told["reason"]) == (409, "Conflict")
    assert "no existing object was found" in told["message"]


def test_an_applied_workload_keeps_what_controllers_and_scale_wrote(cluster: DevCluster, path: str) -> None:
    namespace = path.split("/")[4]
    sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/ws"
    cluster.apply(sets, stateful_set("ws"))
    ready = cluster.until(sets, lambda o: o["status"].get("readyReplicas") == 1)
    _, same = cluster.apply(sets, stateful_set("ws"))
    assert same["metadata"]["resourceVersion"] == ready["metadata"]["resourceVersion"]
    assert same["metadata"]["generation"] == 1
    cluster.call("PATCH", f"{sets}/scale", {"spec": {"replicas": 2}}, "merge")
    code, told = cluster.apply(sets, stateful_set("ws"), force=False)
    assert code == 409
    assert told["details"]["causes"][0]["field"] == ".spec.replicas"


def test_replicas_that_were_scaled_to_none_are_nobodys(cluster: DevCluster, path: str) -> None:
    namespace = path.split("/")[4]
    sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/ws"
    cluster.apply(sets, stateful_set("ws"))
    cluster.call("PATCH", f"{sets}/scale", {"spec": {"replicas": 0}}, "merge")
    code, applied = cluster.apply(sets, stateful_set("ws"), force=False)
    assert (code, applied["spec"]["replicas"]) == (200, 1)

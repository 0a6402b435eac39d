"""Objects over HTTP: refusals, storage and watches."""

import pytest

from devcluster.resources import KINDS, Kind
from devcluster.testing.cluster import DevCluster, is_gone
from devcluster.typed.schema import described

BODY = {"metadata": {"name": "one", "labels": {"k": "v"}}, "data": {"a": "1"}}


@pytest.fixture
def maps(cluster: DevCluster) -> str:
    return cluster.fresh() + "/configmaps"


def test_a_name_is_taken_once(cluster: DevCluster, maps: str) -> None:
    cluster.create(maps, BODY)
    code, told = cluster.call("POST", maps, BODY)
    assert (code, told["reason"], told["message"]) == (
        409,
        "AlreadyExists",
        'configmaps "one" already exists',
    )


def test_without_a_token_one_is_anonymous_and_with_a_wrong_one_nobody(cluster: DevCluster, maps: str) -> None:
    token, cluster.token = cluster.token, ""
    try:
        code, told = cluster.call("GET", maps)
        assert code == 403
        assert 'User "system:anonymous" cannot list resource "configmaps"' in told["message"]
        assert cluster.call("GET", "/healthz")[0] == 200
        cluster.token = "wrong"
        assert cluster.call("GET", maps)[0] == 401
    finally:
        cluster.token = token


def test_a_change_that_changes_nothing_leaves_no_trace(cluster: DevCluster, maps: str) -> None:
    made = cluster.create(maps, BODY)
    _, same = cluster.call("PATCH", f"{maps}/one", {"data": {"a": "1"}}, "merge")
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    _, other = cluster.call("PATCH", f"{maps}/one", {"data": {"a": "2"}}, "merge")
    assert int(other["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_a_stale_update_is_refused(cluster: DevCluster, maps: str) -> None:
    made = cluster.create(maps, BODY)
    cluster.call("PATCH", f"{maps}/one", {"data": {"a": "2"}}, "merge")
    code, told = cluster.call("PUT", f"{maps}/one", made)
    assert (code, told["reason"]) == (409, "Conflict")


def test_a_delete_with_another_uid_deletes_nothing(cluster: DevCluster, maps: str) -> None:
    cluster.create(maps, BODY)
    code, _ = cluster.call("DELETE", f"{maps}/one", {"preconditions": {"uid": "other"}})
    assert code == 409
    assert cluster.get(f"{maps}/one")["data"] == {"a": "1"}


def test_a_finalizer_holds_an_object_until_it_is_taken_off(cluster: DevCluster, maps: str) -> None:
    cluster.create(maps, {**BODY, "metadata": {"name": "one", "finalizers": ["example.org/hold"]}})
    cluster.call("DELETE", f"{maps}/one")
    assert "deletionTimestamp" in cluster.get(f"{maps}/one")["metadata"]
    cluster.call("PATCH", f"{maps}/one", {"metadata": {"finalizers": None}}, "merge")
    assert is_gone(cluster.get(f"{maps}/one"))


def test_a_dry_run_answers_and_keeps_nothing(cluster: DevCluster, maps: str) -> None:
    cluster.create(maps, BODY, dryRun="All")
    assert is_gone(cluster.get(f"{maps}/one"))


def test_lists_select_by_label_and_come_in_pages(cluster: DevCluster, maps: str) -> None:
    for n in range(5):
        cluster.create(maps, {"metadata": {"name": f"c{n}", "labels": {"n": str(n)}}})
    found = cluster.get(maps, labelSelector="n in (1,2),n!=2")
    assert [o["metadata"]["name"] for o in found["items"]] == ["c1"]
    page = cluster.get(maps, limit="2", labelSelector="n")
    rest = cluster.get(maps, limit="9", labelSelector="n", **{"continue": page["metadata"]["continue"]})
    assert [o["metadata"]["name"] for o in page["items"] + rest["items"]] == [f"c{n}" for n in range(5)]


def test_a_watch_by_label_shows_what_leaves_the_selection_as_deleted(cluster: DevCluster, maps: str) -> None:
    made = cluster.create(maps, BODY)

    def relabel() -> None:
        cluster.call("PATCH", f"{maps}/one", {"metadata": {"labels": {"k": "w"}}}, "merge")

    since = made["metadata"]["resourceVersion"]
    events = cluster.watch(maps, relabel, count=1, labelSelector="k=v", resourceVersion=since)
    assert [(e["type"], e["object"]["metadata"]["labels"]) for e in events] == [("DELETED", {"k": "v"})]
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > int(since)


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


def test_a_namespace_that_is_being_deleted_takes_nothing_new(cluster: DevCluster, maps: str) -> None:
    namespace = maps.removesuffix("/configmaps")
    cluster.create(maps, {"metadata": {"name": "held", "finalizers": ["example.org/hold"]}})
    cluster.call("DELETE", namespace)
    code, told = cluster.call("POST", maps, BODY)
    assert (code, told["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    cluster.until(f"{maps}/held", lambda o: "deletionTimestamp" in o["metadata"])
    cluster.call("PATCH", f"{maps}/held", {"metadata": {"finalizers": None}}, "merge")
    cluster.until(namespace, is_gone)

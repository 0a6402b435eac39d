"""Deletion: objects that go with their owner, before it or not at all; finalizers; emptying of a namespace."""

import pytest

from devcluster.testing.kube import Kube, Obj
from tests.cluster_contract.cases.played import conditions, pods, template, until_pods


def make(kube: Kube, space: str, name: str, *owners: Obj, finalizers: tuple[str, ...] = ()) -> Obj:
    """Create a ConfigMap, which may have owners."""
    meta = {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}
    return kube.create(f"{space}/configmaps", {"metadata": meta})


def owned_by(owner: Obj, **fields: bool) -> Obj:
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
    return ref | {"uid": owner["metadata"]["uid"], **fields}


def is_there(kube: Kube, path: str) -> bool:
    return kube.call("GET", path)[0] == 200


def until_gone(kube: Kube, path: str) -> None:
    kube.until(path, lambda o: o.get("code") == 404)


def release(kube: Kube, path: str) -> None:
    assert kube.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge")[0] == 200


def test_in_the_background_dependents_go_after_their_owner(kube: Kube, space: str) -> None:
    owner = make(kube, space, "owner")
    make(kube, space, "child", owned_by(owner))
    code, answer = kube.call("DELETE", f"{space}/configmaps/owner", {"propagationPolicy": "Background"})
    assert (code, answer["status"]) == (200, "Success")
    assert not is_there(kube, f"{space}/configmaps/owner")
    until_gone(kube, f"{space}/configmaps/child")


def test_in_the_foreground_the_owner_waits_for_dependents_that_block_it(kube: Kube, space: str) -> None:
    owner = make(kube, space, "owner")
    make(kube, space, "child", owned_by(owner, blockOwnerDeletion=True), finalizers=("example.org/hold",))
    code, left = kube.call("DELETE", f"{space}/configmaps/owner", {"propagationPolicy": "Foreground"})
    assert (code, left["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])
    kube.until(f"{space}/configmaps/child", lambda o: "deletionTimestamp" in o["metadata"])
    assert is_there(kube, f"{space}/configmaps/owner")
    release(kube, f"{space}/configmaps/child")
    until_gone(kube, f"{space}/configmaps/owner")


def test_in_the_foreground_dependents_that_do_not_block_are_not_waited_for(kube: Kube, space: str) -> None:
    owner = make(kube, space, "owner")
    make(kube, space, "child", owned_by(owner), finalizers=("example.org/hold",))
    kube.call("DELETE", f"{space}/configmaps/owner", {"propagationPolicy": "Foreground"})
    until_gone(kube, f"{space}/configmaps/owner")
    kube.until(f"{space}/configmaps/child", lambda o: "deletionTimestamp" in o["metadata"])
    release(kube, f"{space}/configmaps/child")
    until_gone(kube, f"{space}/configmaps/child")


def test_orphans_stay_and_forget_their_owner(kube: Kube, space: str) -> None:
    owner = make(kube, space, "owner")
    make(kube, space, "child", owned_by(owner))
    kube.call("DELETE", f"{space}/configmaps/owner", {"propagationPolicy": "Orphan"})
    until_gone(kube, f"{space}/configmaps/owner")
    assert "ownerReferences" not in kube.get(f"{space}/configmaps/child")["metadata"]


def test_what_names_an_owner_that_is_not_there_goes(kube: Kube, space: str) -> None:
    owner = make(kube, space, "owner")
    reference = owned_by(owner) | {"uid": "00000000-0000-4000-8000-000000000000"}
    make(kube, space, "child", reference)
    until_gone(kube, f"{space}/configmaps/child")


def test_what_has_another_owner_left_stays_with_that_one(kube: Kube, space: str) -> None:
    owners = [make(kube, space, name) for name in ("first", "second")]
    make(kube, space, "child", *map(owned_by, owners))
    kube.call("DELETE", f"{space}/configmaps/first")
    found = kube.until(f"{space}/configmaps/child", lambda o: len(o["metadata"]["ownerReferences"]) == 1)
    assert found["metadata"]["ownerReferences"][0]["name"] == "second"


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_deployment_goes_with_everything_that_it_made(
    kube: Kube, space: str, image: str, policy: str
) -> None:
    group = space.replace("/api/v1", "/apis/apps/v1")
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(image, "web")}
    kube.create(f"{group}/deployments", {"metadata": {"name": "web"}, "spec": spec})
    until_pods(kube, space, 2, app="web")
    kube.call("DELETE", f"{group}/deployments/web", {"propagationPolicy": policy})
    until_gone(kube, f"{group}/deployments/web")
    kube.until(f"{group}/replicasets", lambda o: not o["items"])
    until_pods(kube, space, 0, app="web")


def test_a_replica_set_can_leave_its_pods_behind(kube: Kube, space: str, image: str) -> None:
    path = space.replace("/api/v1", "/apis/apps/v1") + "/replicasets"
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "rs"}}, "template": template(image, "rs")}
    kube.create(path, {"metadata": {"name": "rs"}, "spec": spec})
    (pod,) = until_pods(kube, space, 1, app="rs")
    kube.call("DELETE", f"{path}/rs", {"propagationPolicy": "Orphan"})
    until_gone(kube, f"{path}/rs")
    (left,) = pods(kube, space, app="rs")
    assert left["metadata"]["uid"] == pod["metadata"]["uid"] and "ownerReferences" not in left["metadata"]


@pytest.mark.slow
def test_a_namespace_says_what_keeps_it(kube: Kube) -> None:
    space = kube.fresh()
    for name in ("first", "second"):
        make(kube, space, name, finalizers=("example.org/hold",))
    make(kube, space, "free")
    code, left = kube.call("DELETE", space)
    assert (code, left["status"]["phase"]) == (200, "Terminating")
    found = kube.until(space, lambda o: "NamespaceFinalizersRemaining" in conditions(o), seconds=30)
    told = {name: (c["status"], c["reason"], c["message"]) for name, c in conditions(found).items()}
    assert told == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.org/hold in 2 resource instances",
        ),
    }
    for name in ("first", "second"):
        release(kube, f"{space}/configmaps/{name}")
    kube.until(space, lambda o: o.get("code") == 404, seconds=30)


def test_a_namespace_lets_its_pods_go_before_anything_else(kube: Kube, image: str) -> None:
    space = kube.fresh()
    make(kube, space, "kept-for-the-pod")
    pod = template(image)
    kube.create(f"{space}/pods", {**pod, "metadata": {"name": "slow", "finalizers": ["example.org/hold"]}})
    kube.call("DELETE", space)
    kube.until(f"{space}/pods/slow", lambda o: "deletionTimestamp" in o["metadata"], seconds=30)
    assert is_there(kube, f"{space}/configmaps/kept-for-the-pod")
    release(kube, f"{space}/pods/slow")
    kube.until(space, lambda o: o.get("code") == 404, seconds=30)

"""StatefulSets: numbered pods in order, each name only once, and what becomes of their PVCs and templates."""

from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj
from tests.cluster_contract.cases.played import conditions, events, own_node, remove, start, template

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "no-such-class",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


class StatefulSet:
    """StatefulSet of a case, whose pods the case simulates."""

    def __init__(self, kube: Kube, space: str, image: str):
        self.kube, self.space, self._image = kube, space, image
        self.group = space.replace("/api/v1", "/apis/apps/v1")
        self.path = f"{self.group}/statefulsets/ws"

    def create(self, **spec: Any) -> Obj:
        body = {"selector": {"matchLabels": {"app": "ws"}}, "template": template(self._image, "ws"), **spec}
        return self.kube.create(f"{self.group}/statefulsets", {"metadata": {"name": "ws"}, "spec": body})

    def change(self, **spec: Any) -> None:
        code, answer = self.kube.call("PATCH", self.path, {"spec": spec}, "merge")
        assert code == 200, answer

    def version(self, number: str) -> None:
        """Change the template."""
        self.change(template={"metadata": {"annotations": {"version": number}}})

    def until(self, *names: str) -> dict[str, Obj]:
        """Wait until exactly these pods exist, and return them."""
        found = self.kube.until(
            f"{self.space}/pods", lambda o: {p["metadata"]["name"] for p in o["items"]} == set(names)
        )
        return {p["metadata"]["name"]: p for p in found["items"]}

    def until_version(self, name: str, version: str) -> Obj:
        """Wait until the pod is of this template, and return it."""
        found = self.kube.until(f"{self.space}/pods/{name}", lambda o: _version(o) == version)
        return dict(found)

    def start(self, *names: str) -> None:
        for name in names:
            start(self.kube, self.space, {"metadata": {"name": name}})

    def status(self, **wanted: Any) -> Obj:
        """Wait until these members of the status are as wanted (None: absent), and return it."""
        found = self.kube.until(self.path, lambda o: all(o["status"].get(k) == v for k, v in wanted.items()))
        return dict(found["status"])


def _version(pod: Obj) -> str:
    if "metadata" not in pod or "name" not in pod["metadata"]:
        return "gone"
    return str((pod["metadata"].get("annotations") or {}).get("version", "v0"))


@pytest.fixture
def ws(kube: Kube, space: str, image: str) -> StatefulSet:
    return StatefulSet(kube, space, image)


def test_the_next_pod_is_made_once_the_one_before_it_is_ready(ws: StatefulSet) -> None:
    ws.create(replicas=2, serviceName="ws")
    pod = ws.until("ws-0")["ws-0"]
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("ws-0", "ws")
    labels = {"statefulset.kubernetes.io/pod-name": "ws-0", "apps.kubernetes.io/pod-index": "0"}
    assert labels.items() <= pod["metadata"]["labels"].items()
    ws.start("ws-0")
    ws.until("ws-0", "ws-1")
    ws.status(replicas=2, readyReplicas=1, availableReplicas=1)
    assert "Create Pod ws-0 in StatefulSet ws successful" in events(
        ws.kube, ws.space, "ws", "SuccessfulCreate"
    )


def test_the_highest_number_goes_first(ws: StatefulSet) -> None:
    ws.create(replicas=3, podManagementPolicy="Parallel")
    ws.until("ws-0", "ws-1", "ws-2")
    ws.start("ws-0", "ws-1", "ws-2")
    ws.status(readyReplicas=3)
    ws.change(replicas=1)
    ws.until("ws-0")
    assert set(events(ws.kube, ws.space, "ws", "SuccessfulDelete")) == {
        "Delete Pod ws-2 in StatefulSet ws successful",
        "Delete Pod ws-1 in StatefulSet ws successful",
    }


def test_numbers_can_begin_elsewhere(ws: StatefulSet) -> None:
    ws.create(replicas=2, podManagementPolicy="Parallel", ordinals={"start": 5})
    ws.until("ws-5", "ws-6")


def test_a_pod_whose_node_does_not_answer_has_no_second_of_its_name(ws: StatefulSet, image: str) -> None:
    with own_node(ws.kube) as node:
        ws.create(template=template(image, "ws", nodeName=node))
        first = ws.until("ws-0")["ws-0"]
        ws.kube.call("DELETE", f"{ws.space}/pods/ws-0")
        ws.version("v1")
        ws.kube.until(ws.path, lambda o: o["status"]["observedGeneration"] == o["metadata"]["generation"])
        (only,) = ws.until("ws-0").values()
        assert only["metadata"]["uid"] == first["metadata"]["uid"]
        remove(ws.kube, ws.space, "ws-0")
        assert ws.until_version("ws-0", "v1")["metadata"]["uid"] != first["metadata"]["uid"]


def test_an_ended_pod_is_made_anew_under_its_name(ws: StatefulSet) -> None:
    ws.create()
    first = ws.until("ws-0")["ws-0"]
    status = {"phase": "Failed", "reason": "Evicted"}
    ws.kube.call("PATCH", f"{ws.space}/pods/ws-0/status", {"status": status}, "merge")
    uid = first["metadata"]["uid"]
    ws.kube.until(f"{ws.space}/pods/ws-0", lambda o: o["metadata"].get("uid") not in (None, uid))


def test_an_update_goes_from_the_highest_number_down_to_its_partition(ws: StatefulSet) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    ws.create(replicas=3, podManagementPolicy="Parallel", updateStrategy=strategy)
    ws.until("ws-0", "ws-1", "ws-2")
    ws.start("ws-0", "ws-1", "ws-2")
    before = ws.status(readyReplicas=3, currentReplicas=3)["currentRevision"]
    ws.version("v1")
    ws.until_version("ws-2", "v1")
    assert _version(ws.until("ws-0", "ws-1", "ws-2")["ws-1"]) == "v0"
    ws.start("ws-2")
    ws.until_version("ws-1", "v1")
    ws.start("ws-1")
    after = ws.status(readyReplicas=3, updatedReplicas=2)
    assert after["currentRevision"] == before != after["updateRevision"]
    ws.kube.call("DELETE", f"{ws.space}/pods/ws-0")
    ws.kube.until(f"{ws.space}/pods/ws-0", lambda o: o["kind"] == "Pod" and "Ready" not in conditions(o))
    assert _version(ws.until("ws-0", "ws-1", "ws-2")["ws-0"]) == "v0"


def test_its_templates_are_kept_as_numbered_revisions(ws: StatefulSet) -> None:
    ws.create(replicas=0)
    first = ws.kube.until(ws.path, lambda o: "updateRevision" in o["status"])["status"]["updateRevision"]
    ws.version("v1")
    ws.kube.until(ws.path, lambda o: o["status"]["updateRevision"] != first)
    path = f"{ws.group}/controllerrevisions"
    kept = {r["metadata"]["name"]: r for r in ws.kube.get(path)["items"]}
    assert sorted(r["revision"] for r in kept.values()) == [1, 2]
    revision = kept[first]
    assert first == f"ws-{revision['metadata']['labels']['controller.kubernetes.io/hash']}"
    assert revision["data"]["spec"]["template"]["$patch"] == "replace"
    ws.change(template={"metadata": {"annotations": None}})
    ws.status(updateRevision=first)
    assert ws.kube.get(f"{path}/{first}")["revision"] == 3


def test_every_pod_has_claims_of_its_own_that_outlive_it(ws: StatefulSet) -> None:
    ws.create(volumeClaimTemplates=[CLAIM])
    pod = ws.until("ws-0")["ws-0"]
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-ws-0"}}
    assert volume in pod["spec"]["volumes"]
    claim = ws.kube.get(f"{ws.space}/persistentvolumeclaims/data-ws-0")
    assert claim["metadata"]["labels"] == {"app": "ws"} and "ownerReferences" not in claim["metadata"]
    told = events(ws.kube, ws.space, "ws", "SuccessfulCreate")
    assert "Create Claim data-ws-0 Pod ws-0 in StatefulSet ws success" in told
    ws.change(replicas=0)
    ws.until()
    assert ws.kube.get(f"{ws.space}/persistentvolumeclaims/data-ws-0")["status"]["phase"] == "Pending"


def test_claims_can_go_with_the_pods_that_are_scaled_away(ws: StatefulSet) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    ws.create(
        replicas=2,
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[CLAIM],
        persistentVolumeClaimRetentionPolicy=policy,
    )
    ws.until("ws-0", "ws-1")
    ws.change(replicas=1)
    ws.until("ws-0")
    ws.kube.until(f"{ws.space}/persistentvolumeclaims/data-ws-1", lambda o: o.get("code") == 404)
    assert ws.kube.get(f"{ws.space}/persistentvolumeclaims/data-ws-0")["kind"] == "PersistentVolumeClaim"


def test_claims_can_go_with_the_set(ws: StatefulSet) -> None:
    policy = {"whenScaled": "Retain", "whenDeleted": "Delete"}
    ws.create(volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    ws.until("ws-0")
    path = f"{ws.space}/persistentvolumeclaims/data-ws-0"
    claim = ws.kube.until(path, lambda o: bool(o["metadata"].get("ownerReferences")))
    assert [r["kind"] for r in claim["metadata"]["ownerReferences"]] == ["StatefulSet"]
    ws.kube.call("DELETE", ws.path)
    ws.kube.until(path, lambda o: o.get("code") == 404)


def test_a_set_made_again_adopts_the_pods_that_were_left_to_it(ws: StatefulSet) -> None:
    ws.create()
    pod = ws.until("ws-0")["ws-0"]
    ws.kube.call("DELETE", ws.path, {"propagationPolicy": "Orphan"})
    ws.kube.until(ws.path, lambda o: o.get("code") == 404)
    path = f"{ws.space}/pods/ws-0"
    assert "ownerReferences" not in ws.kube.until(path, lambda o: "ownerReferences" not in o["metadata"])
    made = ws.create()
    found = ws.kube.until(path, lambda o: bool(o["metadata"].get("ownerReferences")))
    assert found["metadata"]["uid"] == pod["metadata"]["uid"]
    assert found["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]

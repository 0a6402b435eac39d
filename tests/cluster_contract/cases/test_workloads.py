"""ReplicaSets and Deployments: how many pods there are, of which template, and rollouts."""

import json
from typing import Any

import pytest

from devcluster.testing.kube import Kube, Obj
from tests.cluster_contract.cases.played import (
    conditions,
    events,
    own_node,
    pods,
    remove,
    start,
    template,
    until_pods,
)

REVISION = "deployment.kubernetes.io/revision"


class Deployment:
    """Deployment of a case, whose pods the case simulates."""

    def __init__(self, kube: Kube, space: str, image: str):
        self.kube, self.space, self._image = kube, space, image
        self.group = space.replace("/api/v1", "/apis/apps/v1")
        self.path = f"{self.group}/deployments/web"

    def create(self, **spec: Any) -> Obj:
        body = {"selector": {"matchLabels": {"app": "web"}}, "template": template(self._image, "web"), **spec}
        return self.kube.create(f"{self.group}/deployments", {"metadata": {"name": "web"}, "spec": body})

    def change(self, **spec: Any) -> None:
        code, answer = self.kube.call("PATCH", self.path, {"spec": spec}, "merge")
        assert code == 200, answer

    def version(self, number: str) -> None:
        """Change the template."""
        self.change(template={"metadata": {"annotations": {"version": number}}})

    def sets(self, count: int) -> dict[str, Obj]:
        """Wait until there are that many ReplicaSets, and return them by version of their template."""
        found = self.kube.until(f"{self.group}/replicasets", lambda o: len(o["items"]) == count)
        return {_version(r): r for r in found["items"]}

    def sizes(self, **wanted: int) -> dict[str, Obj]:
        """Wait until the ReplicaSets are of these sizes and have as many pods, and return them."""

        def holds(found: Any) -> bool:
            has = {_version(r): r["spec"]["replicas"] for r in found["items"]}
            made = {_version(r): r["status"]["replicas"] for r in found["items"]}
            return has == made == wanted

        found = self.kube.until(f"{self.group}/replicasets", holds)
        return {_version(r): r for r in found["items"]}

    def start(self, version: str) -> None:
        """Make the pods of this version ready."""
        for pod in pods(self.kube, self.space, app="web"):
            if _annotations(pod).get("version", "v0") == version and not conditions(pod).get("Ready"):
                start(self.kube, self.space, pod)

    def until(self, condition: str, reason: str) -> Obj:
        found = self.kube.until(self.path, lambda o: conditions(o).get(condition, {}).get("reason") == reason)
        return dict(found)

    def until_revision(self, number: str) -> Obj:
        return dict(self.kube.until(self.path, lambda o: _annotations(o).get(REVISION) == number))

    def status(self, **wanted: Any) -> Obj:
        """Wait until these members of the status are as wanted (None: absent), and return it."""
        found = self.kube.until(self.path, lambda o: all(o["status"].get(k) == v for k, v in wanted.items()))
        return dict(found["status"])


def _annotations(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _version(replica_set: Obj) -> str:
    return _annotations(replica_set["spec"]["template"]).get("version", "v0")


@pytest.fixture
def web(kube: Kube, space: str, image: str) -> Deployment:
    return Deployment(kube, space, image)


def test_a_deployment_makes_a_replica_set_told_apart_by_its_templates_hash(web: Deployment) -> None:
    web.create(replicas=2)
    (pod, _) = until_pods(web.kube, web.space, 2, app="web")
    replica_set = web.sets(1)["v0"]
    name, code = replica_set["metadata"]["name"], replica_set["metadata"]["labels"]["pod-template-hash"]
    assert name == f"web-{code}"
    assert replica_set["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": code}}
    told = {"desired-replicas": "2", "max-replicas": "3", "revision": "1"}
    assert _annotations(replica_set) == {f"deployment.kubernetes.io/{k}": v for k, v in told.items()}
    assert pod["metadata"]["generateName"] == f"{name}-"
    assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": code}
    assert events(web.kube, web.space, "web", "ScalingReplicaSet") == [
        f"Scaled up replica set {name} from 0 to 2"
    ]
    assert len(events(web.kube, web.space, name, "SuccessfulCreate")) == 2


def test_a_deployment_says_how_far_it_is(web: Deployment) -> None:
    web.create(replicas=2)
    until_pods(web.kube, web.space, 2, app="web")
    status = web.status(unavailableReplicas=2, updatedReplicas=2)
    told = conditions({"status": status})["Available"]
    assert (told["status"], told["reason"]) == ("False", "MinimumReplicasUnavailable")
    assert told["message"] == "Deployment does not have minimum availability."
    web.start("v0")
    found = web.until("Progressing", "NewReplicaSetAvailable")
    name = web.sets(1)["v0"]["metadata"]["name"]
    assert conditions(found)["Progressing"]["message"] == f'ReplicaSet "{name}" has successfully progressed.'
    counts = {k: v for k, v in found["status"].items() if k.endswith("icas")}
    assert counts == {
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }
    assert conditions(found)["Available"]["message"] == "Deployment has minimum availability."


def test_a_rolling_update_keeps_to_its_surge_and_to_what_may_be_unavailable(web: Deployment) -> None:
    web.create(replicas=4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}})
    until_pods(web.kube, web.space, 4, app="web")
    web.start("v0")
    web.until("Progressing", "NewReplicaSetAvailable")
    web.version("v1")
    web.sizes(v0=3, v1=2)
    web.start("v1")
    web.sizes(v0=1, v1=4)
    web.start("v1")
    web.sizes(v0=0, v1=4)
    found = web.kube.until(web.path, lambda o: o["status"].get("availableReplicas") == 4)
    web.status(updatedReplicas=4, replicas=4)
    assert _annotations(found)[REVISION] == "2"


def test_recreate_makes_nothing_new_before_everything_old_is_gone(web: Deployment, image: str) -> None:
    with own_node(web.kube) as node:
        web.create(strategy={"type": "Recreate"}, template=template(image, "web", nodeName=node))
        (old,) = until_pods(web.kube, web.space, 1, app="web")
        web.version("v1")
        path = f"{web.space}/pods/{old['metadata']['name']}"
        web.kube.until(path, lambda o: "deletionTimestamp" in o["metadata"])
        web.status(terminatingReplicas=1, replicas=None)
        assert set(web.sets(1)) == {"v0"}
        remove(web.kube, web.space, old["metadata"]["name"])
        web.sizes(v0=0, v1=1)


def test_a_template_used_before_gets_its_replica_set_back_as_the_latest_revision(web: Deployment) -> None:
    web.create(replicas=0)
    before = web.sets(1)["v0"]["metadata"]["name"]
    web.version("v1")
    web.sets(2)
    web.change(template={"metadata": {"annotations": None}})
    found = web.until_revision("3")
    assert found["status"]["observedGeneration"]
    again = web.sets(2)["v0"]
    assert again["metadata"]["name"] == before
    assert _annotations(again)[REVISION] == "3"
    assert _annotations(again)["deployment.kubernetes.io/revision-history"] == "1"


def test_of_old_replica_sets_as_many_are_kept_as_history_is_wanted(web: Deployment) -> None:
    web.create(replicas=0, revisionHistoryLimit=1)
    web.sets(1)
    for revision, version in (("2", "v1"), ("3", "v2"), ("4", "v3")):
        web.version(version)
        web.until_revision(revision)
    assert set(web.sets(2)) == {"v2", "v3"}


def test_a_rollout_that_gets_nowhere_is_given_up(web: Deployment) -> None:
    web.create(progressDeadlineSeconds=1)
    found = web.until("Progressing", "ProgressDeadlineExceeded")
    name = web.sets(1)["v0"]["metadata"]["name"]
    told = conditions(found)["Progressing"]
    assert (told["status"], told["message"]) == ("False", f'ReplicaSet "{name}" has timed out progressing.')
    web.start("v0")
    web.until("Progressing", "NewReplicaSetAvailable")


def test_a_paused_deployment_scales_and_does_not_roll(web: Deployment) -> None:
    web.create()
    until_pods(web.kube, web.space, 1, app="web")
    web.start("v0")
    web.until("Progressing", "NewReplicaSetAvailable")
    web.change(paused=True, replicas=2)
    found = web.until("Progressing", "DeploymentPaused")
    assert conditions(found)["Progressing"]["message"] == "Deployment is paused"
    web.version("v1")
    web.kube.until(web.path, lambda o: o["status"]["observedGeneration"] == o["metadata"]["generation"])
    web.sizes(v0=2)
    web.change(paused=False)
    web.sets(2)


def test_a_rollout_that_is_scaled_shares_the_change_out(web: Deployment) -> None:
    web.create(replicas=4, strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}})
    until_pods(web.kube, web.space, 4, app="web")
    web.start("v0")
    web.until("Progressing", "NewReplicaSetAvailable")
    web.version("v1")
    web.sizes(v0=2, v1=2)
    web.change(replicas=8)
    web.sizes(v0=4, v1=4)


def test_what_a_quota_refuses_is_told_as_a_replica_failure(web: Deployment) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    web.kube.create(f"{web.space}/resourcequotas", quota)
    web.kube.until(f"{web.space}/resourcequotas/none", lambda o: "used" in o["status"])
    web.create()
    told = conditions(web.until("ReplicaFailure", "FailedCreate"))["ReplicaFailure"]
    assert "is forbidden: exceeded quota: none, requested: pods=1, used: pods=0" in told["message"]
    name = web.sets(1)["v0"]["metadata"]["name"]
    assert events(web.kube, web.space, name, "FailedCreate")[0].startswith(f'Error creating: pods "{name}-')


def test_a_pod_counts_as_available_only_after_its_time(web: Deployment) -> None:
    web.create(minReadySeconds=60)
    (pod,) = until_pods(web.kube, web.space, 1, app="web")
    start(web.kube, web.space, pod)
    early = web.status(readyReplicas=1)
    assert "availableReplicas" not in early and early["unavailableReplicas"] == 1
    start(web.kube, web.space, pod, ago_seconds=58)
    web.status(availableReplicas=1, unavailableReplicas=None)


# --- ReplicaSets by themselves


def replica_set(kube: Kube, space: str, image: str, replicas: int) -> str:
    """Create a ReplicaSet and return its path."""
    path = space.replace("/api/v1", "/apis/apps/v1") + "/replicasets"
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "rs"}},
        "template": template(image, "rs"),
    }
    kube.create(path, {"metadata": {"name": "rs"}, "spec": spec})
    return f"{path}/rs"


def test_a_replica_set_adopts_pods_that_it_selects(kube: Kube, space: str, image: str) -> None:
    pod = template(image, "rs")
    kube.create(f"{space}/pods", {**pod, "metadata": {**pod["metadata"], "name": "stray"}})
    path = replica_set(kube, space, image, 1)
    found = kube.until(f"{space}/pods/stray", lambda o: bool(o["metadata"].get("ownerReferences")))
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "rs", True)
    kube.until(path, lambda o: o["status"]["replicas"] == 1)
    assert len(pods(kube, space, app="rs")) == 1


def test_a_replica_set_lets_go_of_a_pod_that_it_no_longer_selects(kube: Kube, space: str, image: str) -> None:
    replica_set(kube, space, image, 1)
    (pod,) = until_pods(kube, space, 1, app="rs")
    path = f"{space}/pods/{pod['metadata']['name']}"
    kube.call("PATCH", path, {"metadata": {"labels": {"app": "debugged"}}}, "merge")
    kube.until(path, lambda o: "ownerReferences" not in o["metadata"])
    (other,) = until_pods(kube, space, 1, app="rs")
    assert other["metadata"]["name"] != pod["metadata"]["name"]


def test_when_it_shrinks_pods_that_serve_stay(kube: Kube, space: str, image: str) -> None:
    path = replica_set(kube, space, image, 3)
    idle, serving, dear = until_pods(kube, space, 3, app="rs")
    for pod in (serving, dear):
        start(kube, space, pod)
    kube.call("PATCH", f"{path}/scale", {"spec": {"replicas": 2}}, "merge")
    kept = until_pods(kube, space, 2, app="rs")
    assert idle["metadata"]["name"] not in [p["metadata"]["name"] for p in kept]
    cost = {"controller.kubernetes.io/pod-deletion-cost": "100"}
    name = dear["metadata"]["name"]
    kube.call("PATCH", f"{space}/pods/{name}", {"metadata": {"annotations": cost}}, "merge")
    kube.call("PATCH", f"{path}/scale", {"spec": {"replicas": 1}}, "merge")
    (last,) = until_pods(kube, space, 1, app="rs")
    assert last["metadata"]["name"] == name


def test_an_ended_pod_is_replaced_and_left_to_be_read(kube: Kube, space: str, image: str) -> None:
    path = replica_set(kube, space, image, 1)
    (pod,) = until_pods(kube, space, 1, app="rs")
    status = {"phase": "Failed", "reason": "Evicted"}
    code, _ = kube.call(
        "PATCH", f"{space}/pods/{pod['metadata']['name']}/status", {"status": status}, "merge"
    )
    assert code == 200
    until_pods(kube, space, 2, app="rs")
    found = kube.until(path, lambda o: o["status"]["observedGeneration"] == 1)
    assert found["status"]["replicas"] == 1, json.dumps(found)

"""PodDisruptionBudgets: what they count, and how they refuse an eviction for the moment."""

from devcluster.testing.kube import Kube, Obj
from tests.cluster_contract.cases.played import conditions, pods, start, template, until_pods


def workload(kube: Kube, space: str, image: str, replicas: int) -> list[Obj]:
    """Create a ReplicaSet, make its pods ready, and return them."""
    path = space.replace("/api/v1", "/apis/apps/v1") + "/replicasets"
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template(image, "a")}
    kube.create(path, {"metadata": {"name": "a"}, "spec": spec})
    made = until_pods(kube, space, replicas, app="a")
    for pod in made:
        start(kube, space, pod)
    return made


def budget(kube: Kube, space: str, **spec: object) -> str:
    """Create a PodDisruptionBudget and return its path."""
    path = space.replace("/api/v1", "/apis/policy/v1") + "/poddisruptionbudgets"
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec}}
    kube.create(path, body)
    return f"{path}/b"


def evict(kube: Kube, space: str, pod: Obj) -> tuple[int, Obj]:
    name = pod["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    code, answer = kube.call("POST", f"{space}/pods/{name}/eviction", body)
    return code, dict(answer)


def test_a_budget_says_how_many_pods_may_go(kube: Kube, space: str, image: str) -> None:
    workload(kube, space, image, 3)
    path = budget(kube, space, minAvailable=2)
    found = kube.until(path, lambda o: o["status"].get("disruptionsAllowed") == 1)
    counts = {k: v for k, v in found["status"].items() if k not in ("conditions", "observedGeneration")}
    assert counts == {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
    told = conditions(found)["DisruptionAllowed"]
    assert (told["status"], told["reason"], told["message"]) == ("True", "SufficientPods", "")


def test_a_share_is_one_of_what_the_controllers_ask_for(kube: Kube, space: str, image: str) -> None:
    workload(kube, space, image, 4)
    path = budget(kube, space, maxUnavailable="30%")
    found = kube.until(path, lambda o: o["status"].get("currentHealthy") == 4)
    assert (found["status"]["expectedPods"], found["status"]["desiredHealthy"]) == (4, 2)


def test_an_eviction_that_the_budget_does_not_allow_is_refused_for_now(
    kube: Kube, space: str, image: str
) -> None:
    (pod,) = workload(kube, space, image, 1)
    path = budget(kube, space, minAvailable=1)
    kube.until(path, lambda o: o["status"].get("currentHealthy") == 1)
    code, refused = evict(kube, space, pod)
    assert (code, refused["reason"]) == (429, "TooManyRequests")
    assert refused["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    why = "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert refused["details"] == {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    assert kube.get(f"{space}/pods/{pod['metadata']['name']}")["kind"] == "Pod"


def test_an_eviction_that_is_allowed_uses_the_budget_up(kube: Kube, space: str, image: str) -> None:
    first, second = workload(kube, space, image, 2)
    path = budget(kube, space, minAvailable=1)
    kube.until(path, lambda o: o["status"].get("disruptionsAllowed") == 1)
    hold = {"metadata": {"finalizers": ["example.org/hold"]}}
    name = f"{space}/pods/{first['metadata']['name']}"
    kube.call("PATCH", name, hold, "merge")
    code, answer = evict(kube, space, first)
    assert (code, answer["status"]) == (201, "Success")
    going = kube.get(name)
    assert "deletionTimestamp" in going["metadata"]
    told = conditions(going)["DisruptionTarget"]
    assert (told["reason"], told["message"]) == ("EvictionByEvictionAPI", "Eviction API: evicting")
    assert evict(kube, space, second)[0] == 429
    kube.call("PATCH", name, {"metadata": {"finalizers": None}}, "merge")


def test_a_pod_that_does_not_run_yet_is_evicted_whatever_the_budget(
    kube: Kube, space: str, image: str
) -> None:
    pod = template(image, "a")
    kube.create(f"{space}/pods", {**pod, "metadata": {**pod["metadata"], "name": "waiting"}})
    budget(kube, space, minAvailable=1)
    (found,) = pods(kube, space, app="a")
    assert evict(kube, space, found)[0] == 201
    kube.until(f"{space}/pods/waiting", lambda o: o.get("code") == 404)

"""Unrecorded steps of the scenarios: make namespaces, wait, and put names drawn anew into the next request."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from devcluster.testing.cluster import is_ready
from tests.cluster_contract.player import Stage, Step, Steps

N = "/api/v1/namespaces"
Obj = dict[str, Any]
STEPS: Steps = {}
SILENT = "c-silent"
"""A node without a kubelet."""


def before(scenario: str, note: str) -> Callable[[Step], Step]:
    """Register a step to run before the request of that note."""

    def keep(step: Step) -> Step:
        STEPS[scenario, note] = step
        return step

    return keep


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    meta = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"a": "1"}}


def pod(name: str, gpus: int = 0, **spec: Any) -> Obj:
    amounts = {"cpu": "100m", "memory": "64Mi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    resources = {"limits": amounts, "requests": amounts}
    container = {"name": "main", "image": "local/none:1", "resources": deepcopy(resources)}
    meta = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def selecting(*expressions: Obj) -> Obj:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def mounting(claim: str) -> list[Obj]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]


def told(stage: Stage, namespace: str, name: str, reason: str) -> None:
    """Wait for an event about the object."""
    fields = f"involvedObject.name={name},reason={reason}"
    stage.cluster.until(f"{N}/{namespace}/events?fieldSelector={fields}", lambda o: bool(o["items"]))


def a_namespace(name: str, **labels: str) -> Step:
    def step(stage: Stage) -> None:
        stage.cluster.namespace(name, **labels)

    return step


before("objects", "create")(a_namespace("c-obj"))
before("apply", "apply creates")(a_namespace("c-apply"))
before("quota", "quota")(a_namespace("c-quota"))
before("statefulset", "a pod tried first, dry run")(a_namespace("c-sts"))
before("pods", "many causes at once")(a_namespace("c-pod"))
before("scheduling", "claim without a class")(a_namespace("c-sched"))
before("services", "load balancer")(a_namespace("c-svc"))
before("volumes", "class, binds on first use, grows")(a_namespace("c-vol"))
before("workloads", "deployment")(a_namespace("c-work"))
before("podsecurity", "restricted refuses")(
    a_namespace("c-ps", **{"pod-security.kubernetes.io/enforce": "restricted"})
)


# --- Access


@before("access", "nobody")
def _(stage: Stage) -> None:
    a_namespace("c-rbac")(stage)
    stage.request["headers"] = {"Authorization": ""}


@before("access", "a wrong token")
def _(stage: Stage) -> None:
    stage.request["headers"] = {"Authorization": "Bearer nope"}


@before("access", "a token for a service account")
def _(stage: Stage) -> None:
    stage.cluster.create(f"{N}/c-rbac/serviceaccounts", {"metadata": {"name": "limited"}})


def _by_that_account(stage: Stage) -> None:
    token = stage.answers["a token for a service account"]["status"]["token"]
    stage.request["headers"] = {"Authorization": f"Bearer {token}"}


for _note in ("list without the right", "create without the right", "at cluster scope", "may I?"):
    before("access", _note)(_by_that_account)


# --- Namespaces and objects


@before("namespaces", "gone")
def _(stage: Stage) -> None:
    stage.cluster.until(f"{N}/c-ns", lambda o: o.get("code") == 404)


@before("objects", "merge patch")
def _(stage: Stage) -> None:
    stage.memory["stale"] = stage.answers["create"]["metadata"]["resourceVersion"]


@before("objects", "update with a stale resourceVersion")
def _(stage: Stage) -> None:
    meta = stage.request["body"]["metadata"]
    meta |= {k: stage.answers["create"]["metadata"][k] for k in ("uid", "resourceVersion")}
    meta |= {"creationTimestamp": stage.answers["create"]["metadata"]["creationTimestamp"]}
    meta["managedFields"] = stage.answers["create"]["metadata"]["managedFields"]


@before("objects", "patch with a stale resourceVersion")
def _(stage: Stage) -> None:
    stage.request["body"]["metadata"]["resourceVersion"] = stage.memory["stale"]


# --- Reading


@before("reading", "label selector even=true")
def _(stage: Stage) -> None:
    a_namespace("c-list")(stage)
    for i in range(5):
        labels = {"n": str(i), "even": str(i % 2 == 0).lower()}
        stage.cluster.create(f"{N}/c-list/configmaps", config_map(f"c{i}", labels=labels))


@before("reading", "next page")
def _(stage: Stage) -> None:
    stage.request["query"]["continue"] = stage.answers["first page"]["metadata"]["continue"]


@before("reading", "as a table")
def _(stage: Stage) -> None:
    stage.request["headers"] = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@before("reading", "metadata only")
def _(stage: Stage) -> None:
    kind = "PartialObjectMetadataList"
    stage.request["headers"] = {"Accept": f"application/json;as={kind};v=v1;g=meta.k8s.io"}


@before("reading", "add, modify, delete")
def _(stage: Stage) -> None:
    cluster, path = stage.cluster, f"{N}/c-list/configmaps"
    stage.memory["rv"] = cluster.get(path)["metadata"]["resourceVersion"]

    def act() -> None:
        cluster.create(path, config_map("w"))
        cluster.call("PATCH", f"{path}/w", {"data": {"b": "2"}}, "merge")
        cluster.call("DELETE", f"{path}/w")

    stage.act = act
    _from_then(stage)


@before("reading", "by label, an object that leaves the selection")
def _(stage: Stage) -> None:
    path = f"{N}/c-list/configmaps/c0"
    body = {"metadata": {"labels": {"even": "false"}}}
    stage.act = lambda: stage.cluster.call("PATCH", path, body, "merge")
    _from_then(stage)


@before("reading", "bookmarks")
def _from_then(stage: Stage) -> None:
    stage.request["query"]["resourceVersion"] = stage.memory["rv"]


# --- Pods, their sets and their places


@before("pods", "a pod's spec is immutable")
def _(stage: Stage) -> None:
    stage.cluster.create(f"{N}/c-pod/pods", pod("fix"))


@before("statefulset", "its pod")
def _(stage: Stage) -> None:
    stage.cluster.until(f"{N}/c-sts/pods/ws-0", is_ready)


@before("statefulset", "its pod deleted by hand: the next comes only once it is gone")
def _(stage: Stage) -> None:
    path = f"{N}/c-sts/pods"
    stage.request["query"]["resourceVersion"] = stage.cluster.get(path)["metadata"]["resourceVersion"]
    stage.act = lambda: stage.cluster.call("DELETE", f"{path}/ws-0")
    stage.watch_seconds = 3  # until the next one runs


@before("statefulset", "scaled to 0")
def _(stage: Stage) -> None:
    stage.cluster.until(f"{N}/c-sts/pods", lambda o: not o["items"])


@before("statefulset", "applied while it is being deleted: accepted, and lost")
def _(stage: Stage) -> None:
    path = stage.request["path"]
    held = {"metadata": {"finalizers": ["example.org/hold"]}}
    stage.cluster.call("PATCH", path, held, "merge")
    # An object that it owns stays too, so that the garbage collector is still at work when the apply comes.
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ws", "blockOwnerDeletion": True}
    owner["uid"] = stage.cluster.get(path)["metadata"]["uid"]
    kept = config_map("kept", finalizers=["example.org/hold"], ownerReferences=[owner])
    stage.cluster.create(f"{N}/c-sts/configmaps", kept)
    stage.cluster.call("DELETE", path, {"propagationPolicy": "Foreground"})


@before("statefulset", "over quota, told by a dry run")
def _(stage: Stage) -> None:
    for held in ("/apis/apps/v1/namespaces/c-sts/statefulsets/ws", f"{N}/c-sts/configmaps/kept"):
        stage.cluster.call("PATCH", held, {"metadata": {"finalizers": None}}, "merge")
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
    stage.cluster.create(f"{N}/c-sts/resourcequotas", quota)


@before("statefulset", "over quota, told by events only")
def _(stage: Stage) -> None:
    template = {"metadata": {"labels": {"app": "ws"}}, "spec": pod("over", 1)["spec"]}
    spec = {"replicas": 1, "serviceName": "ws", "selector": {"matchLabels": {"app": "ws"}}}
    body = {"metadata": {"name": "over"}, "spec": spec | {"template": template}}
    stage.cluster.create("/apis/apps/v1/namespaces/c-sts/statefulsets", body)
    told(stage, "c-sts", "over", "FailedCreate")


UNSCHEDULABLE = {
    "too-many-gpus": pod("too-many-gpus", 9),
    "no-such-product": pod("no-such-product", 1, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100"}),
    "memory-gt": pod(
        "memory-gt",
        1,
        affinity=selecting({"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["90000"]}),
    ),
    "unknown-resource": pod("unknown-resource"),
    "too-much-cpu": pod("too-much-cpu"),
    "no-volume": pod("no-volume", volumes=mounting("absent")),
    "unbound": pod("unbound", volumes=mounting("pending")),
}
_first_container = UNSCHEDULABLE["unknown-resource"]["spec"]["containers"][0]
_first_container["resources"] = {"limits": {"nvidia.com/mig-1g.10gb": "1"}}
_first_container = UNSCHEDULABLE["too-much-cpu"]["spec"]["containers"][0]
_first_container["resources"] = {"requests": {"cpu": "500"}}


def an_unschedulable(name: str, body: Obj) -> Step:
    def step(stage: Stage) -> None:
        stage.cluster.create(f"{N}/c-sched/pods", body)
        told(stage, "c-sched", name, "FailedScheduling")

    return step


for _name, _body in UNSCHEDULABLE.items():
    before("scheduling", f"{_name}: the pod")(an_unschedulable(_name, _body))


@before("scheduling", "fits: the pod")
def _(stage: Stage) -> None:
    stage.cluster.create(f"{N}/c-sched/pods", pod("fits", 1))
    stage.cluster.until(f"{N}/c-sched/pods/fits", is_ready)


@before("scheduling", "log of a pod whose node does not answer")
def _(stage: Stage) -> None:
    """Make a Node without addresses by hand: the recording's script set none either."""
    stage.cluster.create("/api/v1/nodes", {"metadata": {"name": SILENT}, "spec": {"unschedulable": True}})
    stage.cluster.create(f"{N}/c-sched/pods", pod("unheard", nodeName=SILENT))
    stage.request["path"] = f"{N}/c-sched/pods/unheard/log"


# --- Quotas, Pod Security, volumes, workloads


@before("volumes", "and why it waits")
def _(stage: Stage) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fixed"}
    resources = {"requests": {"storage": "1Gi"}}
    body = {"metadata": {"name": "fixed"}, "spec": {**spec, "resources": resources}}
    stage.cluster.create(f"{N}/c-vol/persistentvolumeclaims", body)


@before("volumes", "grow")
def _(stage: Stage) -> None:
    path = f"{N}/c-vol/persistentvolumeclaims/bound"
    stage.cluster.until(path, lambda o: o["status"]["phase"] == "Bound")


@before("volumes", "delete a claim in use")
def _(stage: Stage) -> None:
    stage.cluster.create(f"{N}/c-vol/pods", pod("user", volumes=mounting("bound")))


@before("volumes", "gone once the pod is")
def _(stage: Stage) -> None:
    stage.cluster.call("DELETE", f"{N}/c-vol/pods/user")
    path = f"{N}/c-vol/persistentvolumeclaims/bound"
    stage.cluster.until(path, lambda o: o.get("code") == 404)


@before("workloads", "suspended")
def _(stage: Stage) -> None:
    stage.cluster.until(stage.request["path"], lambda o: o["status"].get("terminating") == 0)

"""Sizes of a Deployment's ReplicaSets at each step of a rollout. Decisions only."""

import math

from devcluster.controllers.workloads.replicas import condition_of, going, without_condition
from devcluster.resources import Obj
from devcluster.values.clock import age_seconds, now

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
HASH = "pod-template-hash"
NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAX,
)

Sizes = dict[str, int]
"""Replicas by the name of the ReplicaSet, for those that are to change."""


def size(replica_set: Obj) -> int:
    return int(replica_set["spec"]["replicas"])


def count(replica_sets: list[Obj], name: str) -> int:
    return sum(r.get("status", {}).get(name, 0) for r in replica_sets)


def annotation(obj: Obj, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def revision(obj: Obj) -> int:
    text = annotation(obj, REVISION)
    return int(text) if text.isdigit() else 0


def is_rolling(deployment: Obj) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def limits(deployment: Obj) -> tuple[int, int]:
    """Return how many pods beyond `replicas` may exist (surge), and how many may be unavailable."""
    replicas = deployment["spec"]["replicas"]
    if not is_rolling(deployment):
        return 0, 0
    rolling = deployment["spec"]["strategy"]["rollingUpdate"]
    surge = _share(rolling["maxSurge"], replicas, up=True)
    unavailable = _share(rolling["maxUnavailable"], replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, replicas)


def _share(value: int | str, replicas: int, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * replicas / 100
    return math.ceil(share) if up else math.floor(share)


def same_template(a: Obj, b: Obj) -> bool:
    """Return True if two pod templates differ at most in their hash label."""

    def plain(template: Obj) -> Obj:
        meta = {k: v for k, v in template["metadata"].items() if v}
        labels = {k: v for k, v in meta.get("labels", {}).items() if k != HASH}
        return {"metadata": meta | {"labels": labels}, "spec": template["spec"]}

    return plain(a) == plain(b)


def find_new(deployment: Obj, replica_sets: list[Obj]) -> Obj | None:
    """Return the oldest ReplicaSet of the Deployment's template."""
    oldest_first = sorted(replica_sets, key=lambda r: str(r["metadata"]["creationTimestamp"]))
    template = deployment["spec"]["template"]
    return next((r for r in oldest_first if same_template(r["spec"]["template"], template)), None)


def is_scaling(deployment: Obj, replica_sets: list[Obj]) -> bool:
    """Return True if the number of replicas changed since the ReplicaSets were sized."""
    replicas = str(deployment["spec"]["replicas"])
    return any(size(r) and annotation(r, DESIRED) not in ("", replicas) for r in replica_sets)


def first_size(deployment: Obj, old: list[Obj]) -> int:
    """Return the size at which a new ReplicaSet begins."""
    return grown_size(deployment, 0, sum(map(size, old)))


def grown_size(deployment: Obj, has: int, total: int) -> int:
    replicas: int = deployment["spec"]["replicas"]
    if not is_rolling(deployment):
        return replicas
    surge, _ = limits(deployment)
    room = replicas + surge - total
    return has if room <= 0 else has + min(room, replicas - has)


def next_sizes(deployment: Obj, new: Obj, old: list[Obj]) -> Sizes:
    """Return the sizes after one step of a rolling update: more new pods, or else fewer old ones."""
    replicas = deployment["spec"]["replicas"]
    has, total = size(new), size(new) + sum(map(size, old))
    wanted = replicas if has > replicas else grown_size(deployment, has, total)
    if wanted != has:
        return {new["metadata"]["name"]: wanted}
    return _shrunk(deployment, new, [r for r in old if size(r)])


def _shrunk(deployment: Obj, new: Obj, old: list[Obj]) -> Sizes:
    _, max_unavailable = limits(deployment)
    least = deployment["spec"]["replicas"] - max_unavailable
    new_unavailable = size(new) - count([new], "availableReplicas")
    spare = size(new) + sum(map(size, old)) - least - new_unavailable
    if spare <= 0:
        return {}
    old = sorted(old, key=lambda r: str(r["metadata"]["creationTimestamp"]))
    sizes = {r["metadata"]["name"]: size(r) for r in old}
    for replica_set in old:  # pods that are not available first
        name = replica_set["metadata"]["name"]
        less = min(spare, max(sizes[name] - count([replica_set], "availableReplicas"), 0))
        sizes[name] -= less
        spare -= less
    serving = count([*old, new], "availableReplicas") - least
    for replica_set in old:
        less = max(min(sizes[replica_set["metadata"]["name"]], serving), 0)
        sizes[replica_set["metadata"]["name"]] -= less
        serving -= less
    return {r["metadata"]["name"]: n for r in old if (n := sizes[r["metadata"]["name"]]) != size(r)}


def scaled_sizes(deployment: Obj, new: Obj | None, old: list[Obj]) -> Sizes:
    """Return each ReplicaSet's share after a change of the number of replicas."""
    everything = [*old, new] if new else old
    working = [r for r in everything if size(r)]
    replicas: int = deployment["spec"]["replicas"]
    if len(working) <= 1:
        only = working[0] if working else new or max(old, key=_age, default=None)
        return {only["metadata"]["name"]: replicas} if only else {}
    if new and size(new) == replicas == count([new], "availableReplicas"):
        return {r["metadata"]["name"]: 0 for r in old if size(r)}
    return _proportional(deployment, working) if is_rolling(deployment) else {}


def _age(replica_set: Obj) -> str:
    return str(replica_set["metadata"]["creationTimestamp"])


def _proportional(deployment: Obj, working: list[Obj]) -> Sizes:
    replicas = deployment["spec"]["replicas"]
    allowed = replicas + limits(deployment)[0] if replicas else 0
    more = allowed - sum(map(size, working))
    working = sorted(working, key=_age, reverse=more > 0)
    working.sort(key=size, reverse=True)
    sizes, given = {}, 0
    for replica_set in working:
        share = round(size(replica_set) * allowed / _was_allowed(replica_set, replicas)) - size(replica_set)
        left = more - given
        share = min(share, left) if more > 0 else max(share, left)
        sizes[replica_set["metadata"]["name"]] = size(replica_set) + share
        given += share
    largest = working[0]["metadata"]["name"]
    sizes[largest] = max(sizes[largest] + more - given, 0)
    return sizes


def _was_allowed(replica_set: Obj, replicas: int) -> int:
    text = annotation(replica_set, MAX)
    return int(text) if text.isdigit() and int(text) else max(replicas, 1)


def surplus(deployment: Obj, old: list[Obj]) -> list[Obj]:
    """Return old ReplicaSets beyond the history limit, the oldest revision first."""
    kept = [r for r in old if not going(r)]
    limit = deployment["spec"]["revisionHistoryLimit"]
    return [r for r in sorted(kept, key=revision)[: max(len(kept) - limit, 0)] if _is_empty(r)]


def _is_empty(replica_set: Obj) -> bool:
    status = replica_set.get("status", {})
    seen = replica_set["metadata"]["generation"] <= status.get("observedGeneration", 0)
    return not size(replica_set) and not status.get("replicas") and seen


def is_complete(deployment: Obj, status: Obj) -> bool:
    replicas = deployment["spec"]["replicas"]
    counts = [status.get(k, 0) for k in ("updatedReplicas", "replicas", "availableReplicas")]
    return (
        counts == [replicas] * 3
        and status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    )


def counts_of(deployment: Obj, replica_sets: list[Obj], new: Obj | None) -> Obj:
    available = count(replica_sets, "availableReplicas")
    counts = {
        "replicas": count(replica_sets, "replicas"),
        "updatedReplicas": count([new] if new else [], "replicas"),
        "readyReplicas": count(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(map(size, replica_sets)) - available, 0),
    }
    status = {"observedGeneration": deployment["metadata"]["generation"]}
    status |= {k: v for k, v in counts.items() if v}
    status["terminatingReplicas"] = count(replica_sets, "terminatingReplicas")
    if collisions := deployment.get("status", {}).get("collisionCount"):
        status["collisionCount"] = collisions
    return status


def availability(deployment: Obj, available: int) -> Obj:
    if available >= deployment["spec"]["replicas"] - limits(deployment)[1]:
        return told("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    message = "Deployment does not have minimum availability."
    return told("Available", "False", "MinimumReplicasUnavailable", message)


def told(name: str, status: str, reason: str, message: str) -> Obj:
    times = {"lastUpdateTime": now(), "lastTransitionTime": now()}
    return {"type": name, "status": status, **times, "reason": reason, "message": message}


def progress(deployment: Obj, status: Obj, new: Obj | None) -> Obj | None:
    """Return the new Progressing condition; None while nothing changed."""
    old = condition_of(deployment, "Progressing")
    if (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and _reason(old) == "NewReplicaSetAvailable"
    ):
        return None
    about = (
        f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    )
    if is_complete(deployment, status):
        return told("Progressing", "True", "NewReplicaSetAvailable", f"{about} has successfully progressed.")
    if _advanced(deployment.get("status", {}), status):
        found = told("Progressing", "True", "ReplicaSetUpdated", f"{about} is progressing.")
        if old and old["status"] == "True":
            found["lastTransitionTime"] = old["lastTransitionTime"]
        return found
    if seconds_to_deadline(deployment) == 0:
        return told("Progressing", "False", "ProgressDeadlineExceeded", f"{about} has timed out progressing.")
    return None


def _reason(found: Obj | None) -> str:
    return str(found["reason"]) if found else ""


def _advanced(old: Obj, new: Obj) -> bool:
    def olds(status: Obj) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    grown = any(
        new.get(k, 0) > old.get(k, 0) for k in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grown or olds(new) < olds(old)


def seconds_to_deadline(deployment: Obj) -> float | None:
    """Return the seconds until a rollout without progress is given up; None if none is under way."""
    found = condition_of(deployment, "Progressing")
    waiting = ("NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "DeploymentResumed")
    if found is None or found["reason"] not in (
        *waiting,
        "ReplicaSetCreateError",
        "ProgressDeadlineExceeded",
    ):
        return None
    left = deployment["spec"]["progressDeadlineSeconds"] - age_seconds(found["lastUpdateTime"])
    return max(float(left), 0.0)


def with_progress(conditions: list[Obj], found: Obj | None) -> list[Obj]:
    """Replace the Progressing condition, unless it repeats the same end of a rollout."""
    if found is None:
        return conditions
    old = next((c for c in conditions if c["type"] == "Progressing"), None)
    settled = found["reason"] != "ReplicaSetUpdated"
    if old and settled and (old["status"], old["reason"]) == (found["status"], found["reason"]):
        return conditions
    return [*without_condition(conditions, "Progressing"), found]

"""Pods from the view of workloads: which count, which are ready and since when, and which to remove first."""

import hashlib
import json
import math
from collections import Counter

from devcluster.resources import Obj
from devcluster.values.clock import age_seconds, now

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


def going(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def phase(pod: Obj) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))


def ended(pod: Obj) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def active(pod: Obj) -> bool:
    return not ended(pod) and not going(pod)


def terminating(pod: Obj) -> bool:
    return going(pod) and not ended(pod)


def condition_of(obj: Obj, name: str) -> Obj | None:
    for condition in obj.get("status", {}).get("conditions", ()):
        if condition["type"] == name:
            found: Obj = condition
            return found
    return None


def ready(pod: Obj) -> bool:
    found = condition_of(pod, "Ready")
    return found is not None and found["status"] == "True"


def ready_seconds(pod: Obj) -> float:
    """Return for how many seconds the pod has been ready; 0 if it is not."""
    found = condition_of(pod, "Ready")
    return age_seconds(found["lastTransitionTime"]) if found and found["status"] == "True" else 0.0


def available(pod: Obj, min_ready_seconds: int) -> bool:
    return ready(pod) if not min_ready_seconds else ready_seconds(pod) >= min_ready_seconds


def seconds_to_available(pods: list[Obj], min_ready_seconds: int) -> float | None:
    """Return the seconds until the next of these pods was ready long enough; None if no pod is waiting for that."""
    if not min_ready_seconds:
        return None
    waiting = [p for p in pods if active(p) and ready(p) and not available(p, min_ready_seconds)]
    return min((min_ready_seconds - ready_seconds(p) for p in waiting), default=None)


def in_order_of_removal(pods: list[Obj], beside: list[Obj]) -> list[Obj]:
    """Return the pods, the least useful first. `beside`: all pods of the same purpose, to spread over nodes."""
    on_node = Counter(p["spec"].get("nodeName") for p in beside if active(p))

    def worth(pod: Obj) -> tuple[float | str, ...]:
        node = pod["spec"].get("nodeName")
        annotations = pod["metadata"].get("annotations") or {}
        return (
            bool(node),
            _PHASES.get(phase(pod), 0),
            ready(pod),
            int(annotations.get(DELETION_COST, 0)),
            -on_node[node],
            _magnitude(ready_seconds(pod)),
            -restarts(pod),
            _magnitude(age_seconds(pod["metadata"]["creationTimestamp"])),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=worth)


def _magnitude(seconds: float) -> int:
    """Return the order of magnitude of an age, so that the removal does not always hit the newest pod."""
    return int(math.log2(max(seconds, 1.0)))


def restarts(pod: Obj) -> int:
    statuses = pod.get("status", {})
    containers = [*statuses.get("containerStatuses", []), *statuses.get("initContainerStatuses", [])]
    return sum(c.get("restartCount", 0) for c in containers)


def template_hash(*parts: object) -> str:
    """Return a hash of a template that is safe in names and spells no words."""
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()
    return "".join(_SAFE[b % len(_SAFE)] for b in digest[:10])


def condition(name: str, status: str, reason: str, message: str) -> Obj:
    return {"type": name, "status": status, "lastTransitionTime": now(), "reason": reason, "message": message}


def with_condition(conditions: list[Obj], new: Obj) -> list[Obj]:
    """Return the conditions with `new`, unchanged if it is there with the same status and reason."""
    old = next((c for c in conditions if c["type"] == new["type"]), None)
    if old and (old["status"], old["reason"]) == (new["status"], new["reason"]):
        return conditions
    if old and old["status"] == new["status"]:
        new = new | {"lastTransitionTime": old["lastTransitionTime"]}
    return [*without_condition(conditions, new["type"]), new]


def without_condition(conditions: list[Obj], name: str) -> list[Obj]:
    return [c for c in conditions if c["type"] != name]

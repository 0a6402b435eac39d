"""Quality of service class of a pod, its first status, and its requests."""

from devcluster.resources import Obj
from devcluster.values.clock import now
from devcluster.values.quantity import milli


def qos_class(spec: Obj) -> str:
    limits_everywhere, anything = True, False
    for container in spec["containers"]:
        resources = container.get("resources", {})
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        for name in ("cpu", "memory"):
            anything = anything or name in limits or name in requests
            same = name in limits and milli(requests.get(name, limits[name])) == milli(limits[name])
            limits_everywhere = limits_everywhere and same
    if not anything:
        return "BestEffort"
    return "Guaranteed" if limits_everywhere else "Burstable"


def first_status(spec: Obj) -> Obj:
    status: Obj = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
        gated |= {"lastTransitionTime": now(), "reason": "SchedulingGated"}
        gated["message"] = "Scheduling is blocked due to non-empty scheduling gates"
        status["conditions"] = [gated]
    return status


def requests(spec: Obj) -> dict[str, int]:
    """Return the pod's requests by resource, in thousandths, with one pod slot."""
    total: dict[str, int] = {}
    for container in spec["containers"]:
        for name, value in container.get("resources", {}).get("requests", {}).items():
            total[name] = total.get(name, 0) + milli(value)
    for container in spec.get("initContainers", []):
        for name, value in container.get("resources", {}).get("requests", {}).items():
            total[name] = max(total.get(name, 0), milli(value))
    return total | {"pods": 1000}

"""Pod condition which shows that the cluster ended the pod, not the pod itself."""

from devcluster.resources import Obj
from devcluster.values.clock import now


def disrupted(pod: Obj, reason: str, message: str) -> Obj:
    """Return the pod's status with DisruptionTarget set."""
    status: Obj = pod.get("status", {})
    conditions = [c for c in status.get("conditions", []) if c["type"] != "DisruptionTarget"]
    target = {
        "type": "DisruptionTarget",
        "observedGeneration": pod["metadata"].get("generation", 1),
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now(),
        "reason": reason,
        "message": message,
    }
    return status | {"conditions": [*conditions, target]}

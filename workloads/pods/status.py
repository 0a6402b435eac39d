"""State of a pod, read from its raw object: how far its start got, and how it ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.causes.cause import Diagnosis
from clusters.explain import diagnose
from clusters.labels import RUN
from clusters.pods.ends import terminal

Object = Mapping[str, Any]

FIRST_USE = "WaitForFirstConsumer"
DELETED, EVICTED = "Deleted", "Evicted"
INDEX = "batch.kubernetes.io/job-completion-index"
BY_KUBELET = "TerminationByKubelet"  # reason in the condition DisruptionTarget


def accepted(claim: Object, binding_modes: Mapping[str, str]) -> bool:
    """Return True if the PVC is bound, or its class binds when the pod is placed."""
    if claim["metadata"].get("deletionTimestamp"):
        return False
    phase = claim.get("status", {}).get("phase")
    return phase == "Bound" or (
        phase == "Pending" and binding_modes.get(claim["spec"].get("storageClassName", "")) == FIRST_USE
    )


def container_status(pod: Object) -> Object:
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    return next((s for s in statuses if s.get("name") == "workspace"), statuses[0])


def has_image(pod: Object) -> bool:
    return bool(container_status(pod).get("imageID")) or has_started(pod)


def has_started(pod: Object) -> bool:
    """Return True if its program runs or ran. When it has ended, the pod's phase still is Running for a while."""
    status = container_status(pod)
    return bool({"running", "terminated"} & status.get("state", {}).keys() or status.get("restartCount"))


def going(pod: Object) -> bool:
    """Return True if the pod has ended or is being deleted."""
    return terminal(pod) or bool(pod["metadata"].get("deletionTimestamp"))


def index_of(pod: Object) -> int:
    """Return the pod's index in its Job, which is the rank of its node."""
    text = str((pod["metadata"].get("annotations") or {}).get(INDEX, ""))
    return int(text) if text.isdecimal() else 0


def is_of(run: str, pod: Object) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(RUN) == run)


def end_reason(pod: Object) -> str:
    status = pod.get("status", {})
    evicted = EVICTED if evicted_why(pod) else ""
    ended = container_status(pod).get("state", {}).get("terminated", {})
    deleted = DELETED if pod["metadata"].get("deletionTimestamp") else ""
    return str(status.get("reason") or evicted or deleted or ended.get("reason") or status.get("phase"))


def ended_from_outside(pod: Object) -> bool:
    """Return True if the node or a deletion ended the pod. If its program ended, only its container has a reason."""
    has_reason = pod.get("status", {}).get("reason") or evicted_why(pod)
    return bool(has_reason or pod["metadata"].get("deletionTimestamp"))


def evicted_why(pod: Object) -> str:
    """Message of an eviction. The kubelet may lose it in the status while containers end, but not in this condition."""
    conditions = pod.get("status", {}).get("conditions", [])
    return next((str(one.get("message", "")) for one in conditions if one.get("reason") == BY_KUBELET), "")


def explained_end(pod: Object) -> Diagnosis | None:
    """Explain the node's message about the end (an eviction, a shutdown). None if there is no message that we know."""
    message = pod.get("status", {}).get("message") or evicted_why(pod)
    if not message:
        return None
    told = diagnose("container", f"{end_reason(pod)}: {message}")
    return told if told.known else None

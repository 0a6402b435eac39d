"""State of a run, derived from the cluster's objects: how many of the ten steps have their evidence, which trouble
there is, and whether the run's end is proven. Pure: from raw objects to an `Observation`.

Time that a trouble of a start may last before it is final:
at once       a name that is no image, a refusal of the container's configuration
5 minutes     an image that is missing or denied, a container that keeps crashing
2 minutes     no node takes the pod: the claim goes back to the front of the queue
never         a pull under way, a mount that is tried again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from clusters.causes.cause import Diagnosis
from clusters.explain import diagnose, is_passing
from clusters.labels import RUN
from clusters.pods.ends import condition, end_proven, terminal
from workspaces.models import STEPS

Object = Mapping[str, Any]

AT_ONCE = {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}
# The kubelet has not read a Secret or ConfigMap yet, as happens on a busy node: it soon will.
NOT_READ_YET = "failed to sync"
IMAGE_TROUBLES = {"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable"}
CRASH_TROUBLES = {"CrashLoopBackOff", "CreateContainerError", "RunContainerError", "StartError"}
MOUNT_REASONS = {"FailedMount", "FailedAttachVolume", "FailedMapVolume"}
CLAIM_REASONS = {"ProvisioningFailed", "FailedBinding"}
SERVICE_REASONS = {"AllocationFailed", "SyncLoadBalancerFailed"}
SANDBOX_REASONS = {"FailedCreatePodSandBox", "FailedCreatePodContainer", "NetworkNotReady", "NodeNotReady"}
PULL_REASON = "Failed"
# Reasons of events about troubles; all other events say no more than the objects do.
TROUBLE_REASONS = MOUNT_REASONS | CLAIM_REASONS | SERVICE_REASONS | SANDBOX_REASONS | {PULL_REASON}
FIRST_USE = "WaitForFirstConsumer"
LONGEST_RAW = 2000
DELETED, EVICTED = "Deleted", "Evicted"
BY_KUBELET = "TerminationByKubelet"  # reason in the condition DisruptionTarget


class Outcome(Enum):
    """Result of a trouble that lasts."""

    FAIL = "fail"
    REQUEUE = "requeue"
    WAIT = "wait"


@dataclass(frozen=True)
class Trouble:
    """Obstacle to a start. `after_seconds`: how long it may last before `outcome`."""

    diagnosis: Diagnosis
    outcome: Outcome = Outcome.WAIT
    after_seconds: int = 0


class Blocked(Exception):
    """An object that a start needs cannot be used."""

    def __init__(self, code: str, outcome: Outcome, **data: str) -> None:
        super().__init__(code)
        self.trouble = Trouble(Diagnosis(code, data), outcome)


def explain_trouble(
    source: str, text: str, outcome: Outcome = Outcome.WAIT, after_seconds: int = 0
) -> Trouble:
    """Explain a text of the cluster. The original text is kept for the page, which shows it folded."""
    diagnosis = diagnose(source, text)
    with_raw = replace(diagnosis, data={"raw": text[:LONGEST_RAW], **diagnosis.data})
    return Trouble(with_raw, outcome, after_seconds)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Raw objects of one workspace, as last read. `binding_modes`: storage class name to its mode."""

    volume_claims: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    service: Object | None = None
    events: Sequence[Object] = ()
    binding_modes: Mapping[str, str] = field(default_factory=dict)
    # The pod's node; only while the pod is not ready.
    node: Object | None = None

    @property
    def pod(self) -> Object | None:
        """The workspace's pod; the newest if somebody made another by hand."""
        return max(self.pods, key=lambda pod: pod["metadata"].get("creationTimestamp") or "", default=None)


@dataclass(frozen=True, kw_only=True)
class Observation:
    done: int
    trouble: Trouble | None = None
    node: str = ""
    host: str = ""
    # Where Jupyter is, if not at `host`.
    jupyter_host: str = ""
    jupyter_port: int | None = None
    ssh_port: int | None = None
    restarts: int = 0
    # How the container last ended before the node started it again.
    last_end: Diagnosis | None = None
    # Set when the pod ended unasked: the reason in one word, and an explanation if the node reported more.
    ended: str = ""
    # The pod was ended (an eviction, a node that went down, a deletion), rather than its program ended.
    was_ended: bool = False
    explained_end: Diagnosis | None = None


def observe(seen: Snapshot, *, run: str, claims_wanted: int, node_address: str = "") -> Observation:
    """Return how far the run got. Steps count only in order: the first without evidence is the current one."""
    pod = seen.pod
    host, ports = address(seen.service, pod, node_address)
    jupyter_host, jupyter_port = jupyter_address(seen.service, pod, ports)
    evidence = [
        True,  # request: there is a row
        True,  # admission: only an admitted claim is brought up
        len(seen.volume_claims) >= claims_wanted
        and all(accepted(claim, seen.binding_modes) for claim in seen.volume_claims),
        bool(pod and is_of(run, pod)),
        bool(pod and pod["spec"].get("nodeName")),
        bool(pod and has_image(pod)),
        bool(pod and (has_started(pod) or condition(pod, "PodReadyToStartContainers") == "True")),
        bool(pod and condition(pod, "Ready") == "True"),
        bool(host),
    ]
    done = next((index for index, there in enumerate(evidence) if not there), len(STEPS))
    ended = "" if pod is None or not end_proven(pod) else end_reason(pod)
    return Observation(
        done=done,
        trouble=None if done == len(STEPS) else trouble(seen),
        node=pod["spec"].get("nodeName", "") if pod else "",
        host=host,
        jupyter_host=jupyter_host,
        jupyter_port=jupyter_port,
        ssh_port=ports.get("ssh"),
        restarts=container_status(pod).get("restartCount", 0) if pod else 0,
        last_end=last_end(pod) if pod else None,
        ended=ended,
        was_ended=bool(pod and ended and ended_from_outside(pod)),
        explained_end=explained_end(pod) if pod and ended else None,
    )


# --- evidence


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
    status = container_status(pod)
    return "running" in status.get("state", {}) or bool(status.get("restartCount"))


def going(pod: Object) -> bool:
    """Return True if the pod has ended or is being deleted."""
    return terminal(pod) or bool(pod["metadata"].get("deletionTimestamp"))


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


def last_end(pod: Object) -> Diagnosis | None:
    """Explain why the previous container ended; None if there was none."""
    ended = container_status(pod).get("lastState", {}).get("terminated")
    return explain_trouble("container", _end_text(ended)).diagnosis if ended else None


def explained_end(pod: Object) -> Diagnosis | None:
    """Explain the node's message about the end (an eviction, a shutdown). None if there is no message that we know."""
    message = pod.get("status", {}).get("message") or evicted_why(pod)
    if not message:
        return None
    told = diagnose("container", f"{end_reason(pod)}: {message}")
    return told if told.known else None


def address(service: Object | None, pod: Object | None, node_address: str = "") -> tuple[str, dict[str, int]]:
    """Host, and ports by name; ("", {}) while there is none. For a NodePort: `node_address`, else the pod's node."""
    if service is None:
        return "", {}
    ports = service["spec"].get("ports", [])
    if service["spec"].get("type") == "NodePort":
        host = node_address or (pod.get("status", {}).get("hostIP", "") if pod else "")
        return host, {port["name"]: port["nodePort"] for port in ports if host and port.get("nodePort")}
    if service["spec"].get("type") == "ClusterIP":
        host = service["spec"].get("clusterIP") or ""
        return host, {port["name"]: port["port"] for port in ports if host}
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or [{}]
    host = ingress[0].get("ip") or ingress[0].get("hostname") or ""
    return host, {port["name"]: port["port"] for port in ports if host}


def jupyter_address(
    service: Object | None, pod: Object | None, ports: Mapping[str, int]
) -> tuple[str, int | None]:
    """Return where Jupyter is: at the Service's own host (then ""), else at the pod's, if it offers any there."""
    published = {port["name"] for port in service["spec"].get("ports", [])} if service else set()
    if "jupyter" in published or pod is None:
        return "", ports.get("jupyter")
    containers = pod["spec"].get("containers", [])
    offered = [port for container in containers for port in container.get("ports", [])]
    port = next((port["containerPort"] for port in offered if port.get("name") == "jupyter"), None)
    ip = pod.get("status", {}).get("podIP", "")
    return (ip, port) if ip and port else ("", None)


# --- troubles


def trouble(seen: Snapshot) -> Trouble | None:
    """Return the first trouble, in the order in which a start meets them."""
    pod = seen.pod
    unbound = any(claim.get("status", {}).get("phase") != "Bound" for claim in seen.volume_claims)
    if unbound and (found := _from_events(seen, CLAIM_REASONS, "PersistentVolumeClaim", "volume")):
        return found
    if pod is None:
        return None
    if rejected(pod):
        text = f"{pod['status'].get('reason', '')}: {pod['status'].get('message', '')}"
        return explain_trouble("container", text, Outcome.REQUEUE)
    if not pod["spec"].get("nodeName"):
        return _unplaced(pod)
    return _on_node(seen, pod)


def rejected(pod: Object) -> bool:
    """Return True if the kubelet rejected the pod (UnexpectedAdmissionError, OutOf…): nothing of it ever ran."""
    reason = pod.get("status", {}).get("reason") or ""
    return terminal(pod) and (
        reason in ("UnexpectedAdmissionError", "NodeAffinity", "TopologyAffinityError")
        or reason.startswith("OutOf")
    )


def _unplaced(pod: Object) -> Trouble | None:
    for entry in pod.get("status", {}).get("conditions", []):
        if entry["type"] == "PodScheduled" and entry["status"] == "False" and entry.get("message"):
            return explain_trouble("scheduling", entry["message"], Outcome.REQUEUE, 120)
    return None


def _on_node(seen: Snapshot, pod: Object) -> Trouble | None:
    if unwell := _node_not_ready(seen.node):
        return unwell
    status = container_status(pod)
    waiting = status.get("state", {}).get("waiting", {})
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in AT_ONCE:
        after_seconds = 300 if NOT_READ_YET in message else 0
        return explain_trouble("container", f"{reason}: {message}", Outcome.FAIL, after_seconds)
    if reason in IMAGE_TROUBLES:
        return explain_trouble("image", _fullest(seen, message), Outcome.FAIL, 300)
    if reason in CRASH_TROUBLES:
        return explain_trouble("container", _crash(status, reason, message), Outcome.FAIL, 300)
    if not has_started(pod):
        return _from_events(seen, MOUNT_REASONS, "Pod", "volume") or _from_events(
            seen, SANDBOX_REASONS, "Pod", "container"
        )
    return _from_events(seen, SERVICE_REASONS, "Service", "service")


def _node_not_ready(node: Object | None) -> Trouble | None:
    """Trouble of a node that is not ready: the pod's status is then as old as the node's last report."""
    for entry in (node or {}).get("status", {}).get("conditions", []):
        if entry["type"] == "Ready" and entry["status"] != "True":
            return explain_trouble("container", f"{entry.get('reason', '')}: {entry.get('message', '')}")
    return None


def _crash(status: Object, reason: str, message: str) -> str:
    """Text of a crash. The last end explains more than the back-off that follows it."""
    last = status.get("lastState", {}).get("terminated", {})
    return f"{reason}: {_end_text(last) if last.get('reason') else message}"


def _end_text(ended: Object) -> str:
    text = f"{ended.get('reason', '')}, exit code {ended.get('exitCode')}: {ended.get('message', '')}"
    return text.rstrip(": ")


def _fullest(seen: Snapshot, message: str) -> str:
    """Return the text that explains a failed pull: “Back-off pulling image” does not, but the event before it does."""
    if "failed" in message.lower() or "not found" in message.lower():
        return message
    texts = [str(e.get("message", "")) for e in seen.events if e.get("reason") == PULL_REASON]
    return max((t for t in texts if "pull" in t.lower()), key=len, default=message)


def _from_events(
    seen: Snapshot,
    reasons: set[str],
    kind: str,
    source: str,
    outcome: Outcome = Outcome.WAIT,
    after_seconds: int = 0,
) -> Trouble | None:
    """Trouble from the newest such warning about a kind of object."""
    found = [
        e
        for e in seen.events
        if e.get("reason") in reasons
        and e.get("involvedObject", {}).get("kind") == kind
        and not is_passing(str(e.get("message", "")))
    ]
    if not found:
        return None
    newest = max(found, key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or "")
    return explain_trouble(source, str(newest.get("message", "")), outcome, after_seconds)

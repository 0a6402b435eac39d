"""Troubles that keep a pod from starting, in the cluster's words and explained. Pure.

Time that a trouble of a start may last before it is final:
at once       a name that is no image, a refusal of the container's configuration
5 minutes     an image that is missing or denied, a container that keeps crashing
2 minutes     no node takes the pod: the claim goes back to the front of the queue
never         a pull under way, a mount that is tried again, a program that does not answer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from clusters.causes.cause import Diagnosis
from clusters.explain import diagnose, is_passing
from clusters.measures import parse_time
from clusters.pods.ends import terminal

from .status import Object, container_status, has_started

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
PROBE_REASON, UNANSWERED_SECONDS = "Unhealthy", 60
# Reasons of events about troubles; all other events say no more than the objects do.
TROUBLE_REASONS = MOUNT_REASONS | CLAIM_REASONS | SERVICE_REASONS | SANDBOX_REASONS | {PULL_REASON}
LONGEST_RAW = 2000


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
    """Raw objects of one run, as last read. `binding_modes`: storage class name to its mode."""

    volume_claims: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    service: Object | None = None
    events: Sequence[Object] = ()
    binding_modes: Mapping[str, str] = field(default_factory=dict)
    # The pod's node; only while the pod is not ready.
    node: Object | None = None

    @property
    def pod(self) -> Object | None:
        """The run's pod; the newest if somebody made another by hand."""
        return max(self.pods, key=lambda pod: pod["metadata"].get("creationTimestamp") or "", default=None)


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
    return _from_events(seen, SERVICE_REASONS, "Service", "service") or _not_answering(seen, pod)


def _not_answering(seen: Snapshot, pod: Object) -> Trouble | None:
    """Trouble of a container that runs while its probes have failed for a minute: the image may lack what Berth needs.

    The node counts failures in one event; its first ones belong to every start.
    """
    since: Object = next((one for one in pod["status"].get("conditions", []) if one["type"] == "Ready"), {})
    unready = parse_time(since.get("lastTransitionTime"))
    for event in seen.events:
        first, last = (parse_time(event.get(name)) for name in ("firstTimestamp", "lastTimestamp"))
        if event.get("reason") != PROBE_REASON or not first or not last:
            continue
        if (last - max(first, unready or first)).total_seconds() >= UNANSWERED_SECONDS:
            return explain_trouble("container", str(event.get("message", "")))
    return None


def _node_not_ready(node: Object | None) -> Trouble | None:
    """Trouble of a node that is not ready: the pod's status is then as old as the node's last report."""
    for entry in (node or {}).get("status", {}).get("conditions", []):
        if entry["type"] == "Ready" and entry["status"] != "True":
            return explain_trouble("container", f"{entry.get('reason', '')}: {entry.get('message', '')}")
    return None


def last_end(pod: Object) -> Diagnosis | None:
    """Explain why the previous container ended; None if there was none."""
    ended = container_status(pod).get("lastState", {}).get("terminated")
    return explain_trouble("container", _end_text(ended)).diagnosis if ended else None


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

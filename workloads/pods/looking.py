"""Find what can explain a delay of a run's start, from the mirror of its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clusters.mirror import Mirror
from clusters.pods.ends import condition

from .status import Object
from .troubles import Snapshot


def with_reasons(seen: Snapshot, mirror: Mirror) -> Snapshot:
    """Add what can explain a delay, unless all is well: events about the run's objects, and the pod's node."""
    pod = seen.pod
    if pod and condition(pod, "Ready") == "True" and seen.service:
        return seen
    about = [body for body in (*seen.volume_claims, *seen.pods, seen.service) if body]
    events = [event for body in about for event in mirror.events_about(body["metadata"]["uid"])]
    node = mirror.get("Node", None, pod["spec"]["nodeName"]) if pod and pod["spec"].get("nodeName") else None
    return replace(seen, events=events, node=node)


def binding_modes(claims: Sequence[Object], mirror: Mirror) -> dict[str, str]:
    """Binding mode by storage class, for PVCs that are not bound yet."""
    pending = {
        claim["spec"].get("storageClassName", "")
        for claim in claims
        if claim.get("status", {}).get("phase", "Pending") == "Pending"
    }
    found = {name: mirror.get("StorageClass", None, name) for name in pending - {""}}
    return {name: body.get("volumeBindingMode", "Immediate") for name, body in found.items() if body}

"""Pods whose end has to be proven: each carries a finalizer of Berth's until no process of it is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.api import Api
from clusters.mirror import Mirror

Object = Mapping[str, Any]
FINALIZER = "berth.dev/end-seen"


def condition(pod: Object, kind: str) -> str:
    """Return the status of a condition; empty: it has none of that kind."""
    return next((c["status"] for c in pod.get("status", {}).get("conditions", []) if c["type"] == kind), "")


def terminal(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def end_proven(pod: Object) -> bool:
    """Return True if no process of the pod is left: seen terminal, or deleted before it had a node."""
    unplaced = not pod["spec"].get("nodeName") and bool(pod["metadata"].get("deletionTimestamp"))
    return terminal(pod) or unplaced


def is_held(pod: Object) -> bool:
    """Return True if the pod cannot be gone before Berth lets it go."""
    return FINALIZER in (pod["metadata"].get("finalizers") or [])


def remove_finalizer(pod: Object, cluster: Mirror | Api) -> None:
    """Remove our finalizer from a pod whose end is proven; only that one entry, and only while it is there."""
    finalizers = pod["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return
    path = f"/metadata/finalizers/{finalizers.index(FINALIZER)}"
    cluster.json_patch(
        "Pod",
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
        [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}],
    )

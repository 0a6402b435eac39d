"""Repair of what somebody removed from Berth's objects by hand: labels, by which all is found, and the finalizer.
A pod also follows what its workspace exposes."""

from __future__ import annotations

from dataclasses import replace

from clusters.api import Api
from clusters.labels import RUN
from clusters.mirror import Mirror
from clusters.pods.ends import FINALIZER
from clusters.storage.volumes import restore_labels
from workloads.pods import parts
from workloads.pods.status import Object, going
from workloads.pods.troubles import Snapshot

from .wanted import Wanted


def restore_pod(seen: Snapshot, wanted: Wanted, mirror: Mirror) -> Snapshot:
    """Repair labels and finalizer of the run's pod. The uid identifies the pod even if nothing else does."""
    running = None if wanted.workspace.pod_ended else wanted.workspace.pod_uid

    def back(pod: Object) -> Object:
        if pod["metadata"]["uid"] != running:
            return pod
        pod = restore_labels(pod, {**wanted.labels, RUN: str(wanted.run)}, mirror)
        if not going(pod):
            restore_finalizer(pod, mirror)
            pod = follow_metrics(pod, wanted, mirror)
        return pod

    return replace(seen, pods=[back(pod) for pod in seen.pods])


def follow_metrics(pod: Object, wanted: Wanted, mirror: Mirror) -> Object:
    """Announce to Prometheus what the workspace exposes now: its pod need not start anew for that."""
    metadata, announced = pod["metadata"], parts.scraped(wanted.workspace)
    there = (metadata.get("annotations") or {}).get(parts.EXPOSED)
    if there == announced.get(parts.EXPOSED):
        return pod
    changed = {"uid": metadata["uid"], "annotations": dict.fromkeys(parts.SCRAPED) | announced}
    return mirror.merge_patch("Pod", metadata["namespace"], metadata["name"], {"metadata": changed}) or pod


def restore_finalizer(pod: Object, cluster: Mirror | Api) -> None:
    """Add our finalizer: otherwise the pod could vanish before its end was seen."""
    metadata = pod["metadata"]
    others = metadata.get("finalizers") or []
    if FINALIZER in others:
        return
    operation = {"op": "add", "path": "/metadata/finalizers", "value": [*others, FINALIZER]}
    unchanged = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
    cluster.json_patch("Pod", metadata["namespace"], metadata["name"], [unchanged, operation])

"""PVCs and the volumes behind them, as every room that keeps data needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.api import Api
from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from clusters.transport import Json

Object = Mapping[str, Any]
RECLAIM, REFERENCE = "/spec/persistentVolumeReclaimPolicy", "/spec/claimRef"


def set_reclaim(volume: str, policy: str, cluster: Mirror | Api) -> Json | None:
    """Set what happens to a volume when its PVC is deleted. Return the volume; None if it is gone."""
    change = {"spec": {"persistentVolumeReclaimPolicy": policy}}
    return cluster.merge_patch("PersistentVolume", None, volume, change)


def let_go(claim: str, namespace: str, volume: str, mirror: Mirror) -> bool:
    """Let the volume be deleted with its data once that PVC is. Return False if it is not, or no longer, that PVC's."""
    operations = [*of_claim(claim, namespace), {"op": "add", "path": RECLAIM, "value": "Delete"}]
    return patch_own(volume, operations, mirror)


def driver_of(volume: Object | None) -> str:
    """Return the CSI driver of a volume; empty: it has none."""
    return str(((volume or {}).get("spec", {}).get("csi") or {}).get("driver", ""))


def affinity_of(volume: Object | None) -> Json:
    """Return the node selector of a volume that only some nodes can mount; else an empty one."""
    required: Json = ((volume or {}).get("spec", {}).get("nodeAffinity") or {}).get("required") or {}
    return required


def free_for(claim: str, namespace: str, volume: str, mirror: Mirror) -> bool:
    """Let the next PVC of that name bind the released volume. Return False if it is not that PVC's any more."""
    operations = [*of_claim(claim, namespace), {"op": "add", "path": f"{REFERENCE}/uid", "value": ""}]
    return patch_own(volume, operations, mirror)


def of_claim(claim: str, namespace: str) -> list[Json]:
    """Operations that fail unless the volume is, or was last, bound to that PVC."""
    return [
        {"op": "test", "path": f"{REFERENCE}/namespace", "value": namespace},
        {"op": "test", "path": f"{REFERENCE}/name", "value": claim},
    ]


def patch_own(volume: str, operations: list[Json], mirror: Mirror) -> bool:
    """Patch a volume. Return False if it is gone, or a test among the operations failed."""
    try:
        return mirror.json_patch("PersistentVolume", None, volume, operations) is not None
    except ClusterRefused as refusal:
        if refusal.status != 422:
            raise
        return False


def create_claim(body: Json, mirror: Mirror) -> Object:
    """Create a PVC, or return the one that is there, with its labels: its name can be taken once."""
    metadata = body["metadata"]
    try:
        return mirror.create(body)
    except ClusterRefused as refusal:
        if refusal.status != 409:
            raise
        there = mirror.api.get(body["kind"], metadata["namespace"], metadata["name"])
        if there is None:
            raise
        return restore_labels(there, metadata["labels"], mirror)


def create_once(body: Json, mirror: Mirror) -> None:
    """Create the object, unless its name is taken."""
    try:
        mirror.api.create(body)
    except ClusterRefused as refusal:
        if refusal.status != 409:
            raise


def restore_labels(body: Object, wanted: Mapping[str, str], mirror: Mirror) -> Object:
    """Return the object with the labels by which Berth finds it, repaired if somebody removed one."""
    metadata = body["metadata"]
    if wanted.items() <= (metadata.get("labels") or {}).items():
        return body
    labels = {"metadata": {"labels": dict(wanted)}}
    return mirror.merge_patch(body["kind"], metadata["namespace"], metadata["name"], labels) or body

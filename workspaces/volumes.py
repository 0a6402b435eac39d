"""Volumes that may hold data: kept when their claim goes, deleted only when their person said so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusters.api import Api

from .look import labels_of
from .models import Workspace

KEPT = "berth.dev/kept"  # annotation of a claim whose volume was set to Retain: the volume's name


def keep_data(volume_claims: Sequence[Any], api: Api) -> None:
    """Set the volume of every bound claim to Retain, so that even a deleted namespace deletes no data."""
    for claim in volume_claims:
        metadata, volume = claim["metadata"], claim["spec"].get("volumeName", "")
        bound = claim.get("status", {}).get("phase") == "Bound"
        if bound and metadata.get("annotations", {}).get(KEPT) != volume:
            set_reclaim(volume, "Retain", api)
            annotate = {"metadata": {"annotations": {KEPT: volume}}}
            api.merge_patch("PersistentVolumeClaim", metadata["namespace"], metadata["name"], annotate)


def set_reclaim(volume: str, policy: str, api: Api) -> None:
    api.merge_patch("PersistentVolume", None, volume, {"spec": {"persistentVolumeReclaimPolicy": policy}})


def delete_volumes(workspace: Workspace, api: Api) -> bool:
    """Delete home and disk with their data, as their person said. Whether anything is still there."""
    claims = api.list(
        "PersistentVolumeClaim", namespace=workspace.tenant.namespace, labels=labels_of(workspace)
    )
    for claim in claims:
        metadata = claim["metadata"]
        if metadata.get("deletionTimestamp"):
            continue
        if volume := claim["spec"].get("volumeName"):
            set_reclaim(volume, "Delete", api)
        api.delete("PersistentVolumeClaim", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    return bool(claims)

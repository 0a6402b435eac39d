"""Volumes that may hold data: kept when their claim goes, deleted only when their person said so, never replaced by
empty ones in silence. `Workspace.volumes` knows them, whatever becomes of their claims in the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusters.api import Api
from clusters.causes.cause import Diagnosis
from clusters.errors import ClusterRefused

from .live import changing
from .look import all_of
from .models import NO_DEADLINE, Desired, Event, Workspace
from .observe import Object
from .story import tell


class VolumeGone(Exception):
    """The volume that held the data is not there any more, or serves something else."""

    def __init__(self, claim: str, volume: str) -> None:
        super().__init__(claim)
        self.diagnosis = Diagnosis(code="volume_gone", data={"claim": claim, "volume": volume})


def keep_data(workspace: Workspace, claims: Sequence[Object], api: Api) -> None:
    """Set the volume of every bound claim to Retain, so that even a deleted namespace deletes no data."""
    for claim in claims:
        name, volume = claim["metadata"]["name"], claim["spec"].get("volumeName", "")
        bound = claim.get("status", {}).get("phase") == "Bound"
        if bound and workspace.volumes.get(name) != volume:
            set_reclaim(volume, "Retain", api)
            with changing(workspace.pk) as row:
                row.volumes = {**row.volumes, name: volume}
            workspace.volumes = row.volumes


def make_claim(workspace: Workspace, body: dict[str, Any], api: Api) -> Object:
    """Anew, or onto the volume that was kept when somebody deleted the claim: never an empty one in its place."""
    name = body["metadata"]["name"]
    if volume := workspace.volumes.get(name):
        free_for(name, body["metadata"]["namespace"], volume, api)
        body = {**body, "spec": {**body["spec"], "volumeName": volume}}
    return api.apply(body)


def free_for(claim: str, namespace: str, volume: str, api: Api) -> None:
    """Let the released volume be bound by the next claim of that name, if it is still that claim's."""
    reference = "/spec/claimRef"
    operations = [
        {"op": "test", "path": f"{reference}/namespace", "value": namespace},
        {"op": "test", "path": f"{reference}/name", "value": claim},
        {"op": "add", "path": f"{reference}/uid", "value": ""},
    ]
    try:
        freed = api.json_patch("PersistentVolume", None, volume, operations)
    except ClusterRefused as refusal:
        if refusal.status != 422:
            raise
        freed = None
    if freed is None:
        raise VolumeGone(claim, volume)


def alert_deleted(workspace: Workspace, claims: Sequence[Object]) -> None:
    """Tell at once, also while it is stopped, that somebody deletes what is to be kept."""
    staying = {c["metadata"]["name"] for c in claims if not c["metadata"].get("deletionTimestamp")}
    for claim in sorted(workspace.volumes.keys() - staying):
        with changing(workspace.pk) as row:
            if row.desired == Desired.DELETED or "volume_deleted" in row.troubles:
                return
            data = {"claim": claim, "volume": row.volumes[claim]}
            row.troubles = {**row.troubles, "volume_deleted": NO_DEADLINE}
            row.message_code, row.message_data = "volume_deleted", data
            tell(row, "volume_deleted", level=Event.Level.ERROR, **data)


def set_reclaim(volume: str, policy: str, api: Api) -> None:
    api.merge_patch("PersistentVolume", None, volume, {"spec": {"persistentVolumeReclaimPolicy": policy}})


def delete_volumes(workspace: Workspace, api: Api) -> bool:
    """Delete home and disk with their data, as their person said. Whether anything is still there."""
    claims = all_of("PersistentVolumeClaim", workspace, workspace.volumes, api)
    for claim in claims:
        metadata = claim["metadata"]
        if volume := claim["spec"].get("volumeName"):
            set_reclaim(volume, "Delete", api)
        if not metadata.get("deletionTimestamp"):
            api.delete("PersistentVolumeClaim", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    return bool(claims)

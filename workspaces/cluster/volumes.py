"""Volumes that may hold data: kept when their PVC is deleted, deleted only when their owner said so, never replaced
silently by empty ones. `Workspace.volumes` lists them, whatever happens to the PVCs in the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusters.api import Api
from clusters.errors import ClusterRefused
from workspaces.models import NO_DEADLINE, Desired, Event, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

from .look import all_of
from .observe import Blocked, Object, Outcome


def keep_data(workspace: Workspace, claims: Sequence[Object], api: Api) -> None:
    """Set the volume of every bound PVC to Retain, so that even a deleted namespace deletes no data."""
    for claim in claims:
        name, volume = claim["metadata"]["name"], claim["spec"].get("volumeName", "")
        bound = claim.get("status", {}).get("phase") == "Bound"
        if bound and workspace.volumes.get(name) != volume:
            set_reclaim(volume, "Retain", api)
            with changing(workspace.pk) as row:
                row.volumes = {**row.volumes, name: volume}
            workspace.volumes = row.volumes


def make_claim(workspace: Workspace, body: dict[str, Any], api: Api) -> Object:
    """Create a PVC. If its volume was kept when somebody deleted the PVC, bind that volume, never an empty one."""
    name = body["metadata"]["name"]
    if volume := workspace.volumes.get(name):
        free_for(name, body["metadata"]["namespace"], volume, api)
        body = {**body, "spec": {**body["spec"], "volumeName": volume}}
    return api.apply(body)


def free_for(claim: str, namespace: str, volume: str, api: Api) -> None:
    """Let the next PVC of that name bind the released volume. Raise Blocked if it is not that PVC's any more."""
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
        raise Blocked("volume_gone", Outcome.FAIL, claim=claim, volume=volume)


def alert_deleted(workspace: Workspace, claims: Sequence[Object]) -> None:
    """Report at once, also while the workspace is stopped, that somebody deletes a PVC whose data is to be kept."""
    staying = {c["metadata"]["name"] for c in claims if not c["metadata"].get("deletionTimestamp")}
    for claim in sorted(workspace.volumes.keys() - staying):
        with changing(workspace.pk) as row:
            if row.desired == Desired.DELETED or "volume_deleted" in row.troubles:
                return
            data = {"claim": claim, "volume": row.volumes[claim]}
            row.troubles = {**row.troubles, "volume_deleted": NO_DEADLINE}
            row.message_code, row.message_data = "volume_deleted", data
            add_event(row, "volume_deleted", level=Event.Level.ERROR, **data)


def set_reclaim(volume: str, policy: str, api: Api) -> None:
    api.merge_patch("PersistentVolume", None, volume, {"spec": {"persistentVolumeReclaimPolicy": policy}})


def delete_volumes(workspace: Workspace, api: Api) -> bool:
    """Delete home and disk with their data, as the owner asked. Return True if anything is still there."""
    claims = all_of("PersistentVolumeClaim", workspace, workspace.volumes, api)
    for claim in claims:
        metadata = claim["metadata"]
        if volume := claim["spec"].get("volumeName"):
            set_reclaim(volume, "Delete", api)
        if not metadata.get("deletionTimestamp"):
            api.delete("PersistentVolumeClaim", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    return bool(claims)

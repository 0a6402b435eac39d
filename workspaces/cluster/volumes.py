"""Volumes that may hold data: kept when their PVC is deleted, deleted only when their owner said so, never replaced
silently by empty ones. `Workspace.volumes` lists them, whatever happens to the PVCs in the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusters import volumes
from clusters.labels import WORKSPACE
from clusters.mirror import Mirror
from clusters.models import Installation
from clusters.volumes import affinity_of, create_claim, restore_labels, set_reclaim
from quotas.namespaces.manifests import tenant_labels
from workspaces.models import NO_DEADLINE, Desired, Event, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event

from .look import claims_of
from .observe import Blocked, Object, Outcome


def keep_data(workspace: Workspace, claims: Sequence[Object], mirror: Mirror) -> bool:
    """Set the volume of every bound PVC to Retain, so that even a deleted namespace deletes no data.

    The volumes, and the nodes that they can be mounted on, stand in the row that was read. Return True if there is a
    new one: whoever calls this writes it down.
    """
    before = len(workspace.affinities)
    for claim in claims:
        name, volume = claim["metadata"]["name"], claim["spec"].get("volumeName", "")
        bound = claim.get("status", {}).get("phase") == "Bound"
        if bound and (workspace.volumes.get(name) != volume or name not in workspace.affinities):
            kept = set_reclaim(volume, "Retain", mirror)
            workspace.volumes = {**workspace.volumes, name: volume}
            workspace.affinities = {**workspace.affinities, name: affinity_of(kept)}
    return len(workspace.affinities) > before


def make_claim(workspace: Workspace, body: dict[str, Any], mirror: Mirror) -> Object:
    """Create a PVC, or return the one that is there: its name can be taken once.

    If its volume was kept when somebody deleted the PVC, bind that volume, never an empty one.
    """
    name = body["metadata"]["name"]
    if volume := workspace.volumes.get(name):
        free_for(name, body["metadata"]["namespace"], volume, mirror)
        body = {**body, "spec": {**body["spec"], "volumeName": volume}}
    return create_claim(body, mirror)


def free_for(claim: str, namespace: str, volume: str, mirror: Mirror) -> None:
    """Let the next PVC of that name bind the released volume. Raise Blocked if it is not that PVC's any more."""
    if not volumes.free_for(claim, namespace, volume, mirror):
        raise Blocked("volume_gone", Outcome.FAIL, claim=claim, volume=volume)


def alert_deleted(workspace: Workspace, claims: Sequence[Object], mirror: Mirror) -> None:
    """Report at once, also while the workspace is stopped, that somebody deletes a PVC whose data is to be kept."""
    staying = {c["metadata"]["name"] for c in claims if not c["metadata"].get("deletionTimestamp")}
    if workspace.desired == Desired.DELETED or "volume_deleted" in workspace.troubles:
        return
    for claim in sorted(workspace.volumes.keys() - staying):
        if is_unlabelled(workspace, claim, mirror):
            continue
        with changing(workspace.pk) as row:
            if row.desired == Desired.DELETED or "volume_deleted" in row.troubles:
                return
            data = {"claim": claim, "volume": row.volumes[claim]}
            row.troubles = {**row.troubles, "volume_deleted": NO_DEADLINE}
            row.message_code, row.message_data = "volume_deleted", data
            add_event(row, "volume_deleted", level=Event.Level.ERROR, **data)


def is_unlabelled(workspace: Workspace, claim: str, mirror: Mirror) -> bool:
    """Return True if the PVC is there, and only its labels are not, by which the watch selects. Give them back."""
    there = mirror.api.get("PersistentVolumeClaim", workspace.tenant.namespace, claim)
    if there is None or there["metadata"].get("deletionTimestamp"):
        return False
    wanted = tenant_labels(workspace.tenant, Installation.current_id()) | {WORKSPACE: str(workspace.pk)}
    restore_labels(there, wanted, mirror)
    return True


def delete_volumes(workspace: Workspace, mirror: Mirror) -> bool:
    """Delete home and disk with their data, as the owner asked. Return True if anything is still there."""
    claims = claims_of(workspace, mirror)
    for claim in claims:
        metadata = claim["metadata"]
        if metadata.get("deletionTimestamp"):
            continue
        if volume := claim["spec"].get("volumeName"):
            set_reclaim(volume, "Delete", mirror)
        mirror.delete("PersistentVolumeClaim", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    return bool(claims)

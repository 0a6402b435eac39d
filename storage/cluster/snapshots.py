"""VolumeSnapshots of a volume's copies: made, kept, found again, deleted for good.

Level-triggered, as a look at a volume is. A copy is kept by the Retain of its VolumeSnapshotContent, so that nobody's
deletion of a VolumeSnapshot loses it; `delete` alone takes that back, for a row that its owner deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.locks import locked
from clusters.errors import ClusterRefused
from clusters.mirror import Mirror
from clusters.storage import volumes
from quotas import holders
from storage import ending, enqueue
from storage.models import NO_DRIVER, Phase, Snapshot, Volume
from storage.mounts.leasing import Leases

from . import manifests
from .reading import LONGEST_RAW, explained, in_mib

log = logging.getLogger(__name__)

SNAPSHOT, CONTENT, CLASS = "VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshotClass"
DEFAULT = "snapshot.storage.kubernetes.io/is-default-class"
GIVEN_UP_AFTER = timedelta(minutes=10)
Object = Mapping[str, Any]


def look_at_all(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """Look at the volume's copies that have not settled. Return False if one has to be looked at again."""
    is_done = True
    rows = Snapshot.objects.filter(volume=volume, deleted_at=None)
    for row in rows.exclude(phase=Phase.FAILED).order_by("created_at"):
        row.volume = volume
        try:
            if row.phase == Phase.PENDING:
                take(row, mirror, instance)
            elif row.phase == Phase.DELETING:
                delete(row, mirror)
            elif row.is_passing:
                end_passed(row)
        except ClusterRefused as refusal:
            log.warning("snapshot %s: the cluster refused: %s", row.pk, refusal.message)
            is_done = False
            if refusal.status not in (409, 422):
                note(row, *explained(refusal.message))
    return is_done


# --- take


def take(row: Snapshot, mirror: Mirror, instance: UUID) -> None:
    """Make the VolumeSnapshot if it is missing, and write down what it says. One that fails for long is given up."""
    volume = row.volume
    body = mirror.api.get(SNAPSHOT, volume.tenant.namespace, row.object_name)
    if body is None:
        if row.number is not None and is_still_attached(volume):
            return  # a node may not have written everything; the clock looks again
        snapshot_class = class_for(volume, mirror)
        if snapshot_class is None:
            note(row, "no_snapshot_class", {"class": volume.storage_class}, Phase.FAILED)
            return
        body = mirror.api.create(manifests.snapshot(row, snapshot_class, instance))
    status = body.get("status") or {}
    if status.get("readyToUse") and (name := status.get("boundVolumeSnapshotContentName")):
        if (content := keep_copy(name, mirror)) is not None:
            settle(row, content, status)
        return
    message = str((status.get("error") or {}).get("message", ""))
    is_over = timezone.now() - row.created_at > GIVEN_UP_AFTER
    if is_over:
        discard(row, body, mirror)
    if message or is_over:
        raw = {"raw": message[:LONGEST_RAW]}
        note(row, "snapshot_failed", raw, Phase.FAILED if is_over else None)


def is_still_attached(volume: Volume) -> bool:
    """Return True if a node has the volume attached though nobody uses it any more."""
    return any(lease.nodes for lease in Leases().held([volume.pk]))


def class_for(volume: Volume, mirror: Mirror) -> str | None:
    """Return the snapshot class for the volume's driver, the default one first; None if there is none."""
    try:
        bodies = mirror.api.list(CLASS)
    except ClusterRefused as refusal:
        if refusal.status != 404:  # the cluster knows no snapshots
            raise
        bodies = []
    driver = driver_of(volume, mirror)
    fits = [body for body in bodies if body.get("driver") == driver]
    fits.sort(key=lambda body: (not _is_default(body), body["metadata"]["name"]))
    return str(fits[0]["metadata"]["name"]) if fits else None


def _is_default(body: Object) -> bool:
    return (body["metadata"].get("annotations") or {}).get(DEFAULT) == "true"


def driver_of(volume: Volume, mirror: Mirror) -> str:
    """Return the driver of what the volume is bound to; of a volume of earlier versions the cluster is asked."""
    if volume.driver:
        return volume.driver
    return volumes.driver_of(volumes.set_reclaim(volume.bound_to, "Retain", mirror)) or NO_DRIVER


def keep_copy(content: str, mirror: Mirror) -> Object | None:
    """Let the copy outlive its VolumeSnapshot. Return its content; None if it is gone."""
    return mirror.api.merge_patch(CONTENT, None, content, {"spec": {"deletionPolicy": "Retain"}})


def settle(row: Snapshot, content: Object, status: Object) -> None:
    """Write down that the copy is there, let those go on who waited for it, and end versions that are too many."""
    with transaction.atomic():
        volume = ending.lock(row.volume_id)
        now = locked(Snapshot.objects.filter(pk=row.pk)).get()
        if now.phase != Phase.PENDING:
            return  # deleted meanwhile
        now.phase, now.problem, now.problem_data = Phase.READY, "", {}
        now.content = content["metadata"]["name"]
        now.handle = (content.get("status") or {}).get("snapshotHandle", "")
        now.size_mib = in_mib(status.get("restoreSize")) or volume.size_mib
        now.save()
        enqueue.look(now.copies.filter(deleted_at=None, bound_to="").values_list("pk", flat=True))
        if now.number is not None:
            ending.end_oldest(volume)
    tell(row)


def note(row: Snapshot, code: str, data: Object, phase: Phase | None = None) -> None:
    with transaction.atomic():
        now = locked(Snapshot.objects.filter(pk=row.pk)).get()
        if now.phase == Phase.DELETING and phase is not None:
            return  # its owner deleted it meanwhile
        now.problem, now.problem_data = code, dict(data)
        now.phase = phase or now.phase
        now.save(update_fields=["problem", "problem_data", "phase"])
        if phase is not None:
            enqueue.look(now.copies.filter(deleted_at=None, bound_to="").values_list("pk", flat=True))
    if phase is not None:
        tell(row)


def tell(row: Snapshot) -> None:
    """Let writers go on who waited until the version is taken."""
    if row.number is not None:
        holders.volumes_changed(row.volume.mounts.values_list("holder", flat=True))


# --- find again


def ensure(row: Snapshot, mirror: Mirror, instance: UUID) -> bool:
    """Make the VolumeSnapshot of a ready copy again if somebody deleted it. Return False if the copy cannot be used."""
    namespace = row.volume.tenant.namespace
    if row.phase != Phase.READY:
        return False
    if mirror.api.get(SNAPSHOT, namespace, row.object_name) is not None:
        return True
    there = mirror.api.get(CONTENT, None, row.content)
    if there is None or (there["spec"].get("volumeSnapshotRef") or {}).get("uid"):
        # That content stays with the VolumeSnapshot that is gone: another one names the same copy.
        before, row.content = row.content, again(row.content)
        volumes.create_once(manifests.content(row, driver_of(row.volume, mirror)), mirror)
        mirror.api.delete(CONTENT, None, before)
        Snapshot.objects.filter(pk=row.pk).update(content=row.content)
    mirror.api.create(manifests.snapshot(row, None, instance))
    return True


def again(content: str) -> str:
    """Return the name of the content that follows, the same each time: of `a` it is `a.2`, then `a.3`."""
    stem, _, number = content.partition(".")
    return f"{stem}.{int(number or 1) + 1}"


# --- delete


def end_all(volume: Volume, mirror: Mirror, instance: UUID) -> bool:
    """End the copies of a volume that is deleted for good. Return True once none is left."""
    there = Snapshot.objects.filter(volume=volume, deleted_at=None)
    with transaction.atomic():
        ending.lock(volume.pk)
        for row in locked(there.exclude(phase=Phase.DELETING).order_by("pk")):
            if not ending.waiting_for(row).exists():
                ending.end(row)
    look_at_all(volume, mirror, instance)
    return not there.exists()


def end_passed(row: Snapshot) -> None:
    """End a copy that was made for one new volume, once that has its files."""
    with transaction.atomic():
        ending.lock(row.volume_id)
        now = locked(Snapshot.objects.filter(pk=row.pk)).get()
        if now.phase == Phase.READY and not ending.waiting_for(now).exists():
            ending.end(now)


def delete(row: Snapshot, mirror: Mirror) -> None:
    """Delete the copy for good, once nothing mounts it any more."""
    if row.copies.filter(is_version=True, deleted_at=None).exists():
        return  # that volume's look comes first; its end marks this one
    body = mirror.api.get(SNAPSHOT, row.volume.tenant.namespace, row.object_name)
    if discard(row, body, mirror):
        now = timezone.now()
        Snapshot.objects.filter(pk=row.pk).update(phase=Phase.DELETED, deleted_at=now, problem="")
        tell(row)


def discard(row: Snapshot, body: Object | None, mirror: Mirror) -> bool:
    """Delete the VolumeSnapshot and the copy behind it. Return True once both are gone."""
    namespace, name = row.volume.tenant.namespace, row.object_name
    status = (body or {}).get("status") or {}
    made = f"snapcontent-{body['metadata']['uid']}" if body else ""
    content = row.content or status.get("boundVolumeSnapshotContentName") or made
    if content and not let_go(content, row, mirror):
        content = ""
    if body is not None:
        mirror.api.delete(SNAPSHOT, namespace, name, uid=body["metadata"]["uid"])
        return False
    if content:
        mirror.api.delete(CONTENT, None, content)
        return mirror.api.get(CONTENT, None, content) is None
    return True


def let_go(content: str, row: Snapshot, mirror: Mirror) -> bool:
    """Let the copy be deleted with its content. Return False if that is gone, or not this snapshot's."""
    reference = "/spec/volumeSnapshotRef"
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": f"{reference}/namespace", "value": row.volume.tenant.namespace},
        {"op": "test", "path": f"{reference}/name", "value": row.object_name},
        {"op": "add", "path": "/spec/deletionPolicy", "value": "Delete"},
    ]
    try:
        return mirror.api.json_patch(CONTENT, None, content, operations) is not None
    except ClusterRefused as refusal:
        if refusal.status != 422:
            raise
        return False

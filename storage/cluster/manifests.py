"""PVC of a volume, and the objects of its copies, as dicts. Pure."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from clusters import labels
from clusters.kinds import KINDS
from clusters.quantities import format_mib
from clusters.storage.classes import Class
from quotas.namespaces.manifests import tenant_labels
from storage.models import Access, Kind, Snapshot, Volume

MODES = {
    Access.MANY: "ReadWriteMany",
    Access.NODE: "ReadWriteOnce",
    Access.POD: "ReadWriteOncePod",
    Access.READ: "ReadOnlyMany",
}
ACCESS_OF = {mode: access for access, mode in MODES.items()}


def claim(volume: Volume, found: Class | None, instance: UUID) -> dict[str, Any]:
    """PVC of the volume; one whose data is there already binds that, and nothing else. Nothing owns it."""
    access = Access(volume.access) if volume.access else access_for(volume.kind, found)
    size = volume.size_mib or volume.requested_mib  # the data's own size: growing comes after binding
    if volume.source is not None:
        size = max(size, volume.source.size_mib)
    spec: dict[str, Any] = {
        "accessModes": [MODES[access]],
        "resources": {"requests": {"storage": format_mib(size)}},
    }
    if volume.storage_class or volume.bound_to:
        spec["storageClassName"] = volume.storage_class  # one that was made by hand may have none
    if volume.bound_to:
        spec["volumeName"] = volume.bound_to
    elif volume.source is not None:
        group = KINDS["VolumeSnapshot"].group
        spec["dataSource"] = {"apiGroup": group, "kind": "VolumeSnapshot", "name": volume.source.object_name}
    metadata = {
        "name": volume.object_name,
        "namespace": volume.tenant.namespace,
        "labels": labels_of(volume, instance),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def scratch(volume: Volume) -> dict[str, Any]:
    """Volume of a pod that is made with it, empty, and deleted with it."""
    spec: dict[str, Any] = {
        "accessModes": [MODES[Access.NODE]],
        "resources": {"requests": {"storage": format_mib(volume.requested_mib)}},
    }
    if volume.storage_class:
        spec["storageClassName"] = volume.storage_class
    return {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def access_for(kind: str, found: Class | None) -> Access:
    """Return the access that a new volume asks for: a local disk is for one node, others for several if possible."""
    if kind != Kind.DISK and found is not None and found.is_shared:
        return Access.MANY
    return Access.NODE


def labels_of(volume: Volume, instance: UUID) -> dict[str, str]:
    return tenant_labels(volume.tenant, instance) | {labels.VOLUME: str(volume.pk)}


def snapshot(row: Snapshot, snapshot_class: str | None, instance: UUID) -> dict[str, Any]:
    """VolumeSnapshot of a copy: of the volume's PVC as it is now with a class, of the copy that is there without."""
    volume = row.volume
    if snapshot_class is None:
        spec: dict[str, Any] = {"source": {"volumeSnapshotContentName": row.content}}
    else:
        source = {"persistentVolumeClaimName": volume.object_name}
        spec = {"volumeSnapshotClassName": snapshot_class, "source": source}
    metadata = {
        "name": row.object_name,
        "namespace": volume.tenant.namespace,
        "labels": labels_of(volume, instance),
    }
    kind = KINDS["VolumeSnapshot"]
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def content(row: Snapshot, driver: str) -> dict[str, Any]:
    """VolumeSnapshotContent for a copy that the driver has: it stays when the object goes."""
    kind = KINDS["VolumeSnapshotContent"]
    reference = {
        "apiVersion": kind.api_version,
        "kind": "VolumeSnapshot",
        "name": row.object_name,
        "namespace": row.volume.tenant.namespace,
    }
    spec = {
        "deletionPolicy": "Retain",
        "driver": driver,
        "source": {"snapshotHandle": row.handle},
        "sourceVolumeMode": "Filesystem",
        "volumeSnapshotRef": reference,
    }
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": row.content},
        "spec": spec,
    }

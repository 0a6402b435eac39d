"""PVC of a volume, as a dict. Pure."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from clusters import labels
from clusters.quantities import format_mib
from quotas.namespaces.manifests import tenant_labels
from storage.models import Access, Volume

from .classes import Class, access_for

MODES = {Access.MANY: "ReadWriteMany", Access.NODE: "ReadWriteOnce", Access.POD: "ReadWriteOncePod"}
ACCESS_OF = {mode: access for access, mode in MODES.items()}


def claim(volume: Volume, found: Class | None, instance: UUID) -> dict[str, Any]:
    """PVC of the volume; one whose data is there already binds that, and nothing else. Nothing owns it."""
    access = Access(volume.access) if volume.access else access_for(volume.kind, found)
    size = volume.size_mib or volume.requested_mib  # the data's own size: growing comes after binding
    spec: dict[str, Any] = {
        "accessModes": [MODES[access]],
        "resources": {"requests": {"storage": format_mib(size)}},
    }
    if volume.storage_class:
        spec["storageClassName"] = volume.storage_class
    if volume.bound_to:
        spec["volumeName"] = volume.bound_to
    metadata = {
        "name": volume.object_name,
        "namespace": volume.tenant.namespace,
        "labels": labels_of(volume, instance),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def labels_of(volume: Volume, instance: UUID) -> dict[str, str]:
    return tenant_labels(volume.tenant, instance) | {labels.VOLUME: str(volume.pk)}

"""The NVIDIA driver of old nodes, whose container runtime does not bring it: their folder, mounted read-only.

Pod Security `restricted` forbids hostPath in a pod, and allows a claim that is bound to a volume made by hand. So each
tenant gets one of each for a pool with a driver's path. They hold no data, stay while the pool names that path, and
have the path in their names: another path is another volume, as none can be changed. Pure.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from accounts.models import Tenant
from quotas.models import Pool

from .digest import digest_of
from .tenancy import tenant_labels

PREFIX = "driver-"
MOUNT_PATH = "/usr/local/nvidia"  # where images for CUDA look
SIZE = "1Gi"  # Kubernetes wants one; nothing measures it


def claim_name(pool: Pool) -> str:
    return f"{PREFIX}{pool.id}-{digest_of(pool.driver_path)[:8]}"


def objects(pool: Pool, tenant: Tenant, instance: UUID) -> tuple[dict[str, Any], dict[str, Any]]:
    """The volume, meant for one claim of this tenant; and that claim, which takes no other volume."""
    name = claim_name(pool)
    volume = f"{name}-{tenant.slug}"
    shared = {"storageClassName": "", "accessModes": ["ReadOnlyMany"]}
    labels = tenant_labels(tenant, instance)
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume, "labels": labels},
            "spec": shared
            | {
                "capacity": {"storage": SIZE},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": tenant.namespace, "name": name},
                # A node without the folder refuses the pod, in words; Kubernetes would make an empty one.
                "hostPath": {"path": pool.driver_path, "type": "Directory"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": tenant.namespace, "labels": labels},
            "spec": shared | {"resources": {"requests": {"storage": SIZE}}, "volumeName": volume},
        },
    )

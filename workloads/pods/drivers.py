"""NVIDIA driver of old nodes, whose container runtime does not provide it: the node's folder, mounted read-only.

Pod Security `restricted` forbids hostPath in a pod, but allows a PVC that is bound to a volume made by hand. So each
tenant gets a volume and a PVC for each pool with a driver path. They hold no data and stay while the pool has that
path. Volumes cannot be changed, so another path gets another volume: a digest of the path is in the names. Pure.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from accounts.models import Tenant
from clusters.labels import digest_of
from quotas.models import Pool
from quotas.namespaces.manifests import tenant_labels

PREFIX = "driver-"
MOUNT_PATH = "/usr/local/nvidia"  # CUDA images look here
SIZE = "1Gi"  # Kubernetes requires a size; nothing measures it


def claim_name(pool: Pool) -> str:
    return f"{PREFIX}{pool.id}-{digest_of(pool.driver_path)[:8]}"


def objects(pool: Pool, tenant: Tenant, instance: UUID) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a volume for one PVC of this tenant, and that PVC, which takes no other volume."""
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
                # A node without the folder refuses the pod with a message, instead of creating an empty folder.
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

"""Rights that Berth needs on a cluster: read by doctor, and the same as the ClusterRole in deploy/.

An apply that creates an object needs both patch and create. Secrets are never watched.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from clusters.kinds import ADDITIONS, KINDS


@dataclass(frozen=True)
class Need:
    kind: str
    verbs: tuple[str, ...]
    subresource: str = ""

    @property
    def group(self) -> str:
        return KINDS[self.kind].group

    @property
    def resource(self) -> str:
        plural = KINDS[self.kind].plural
        return f"{plural}/{self.subresource}" if self.subresource else plural

    def arises(self, served: Collection[str]) -> bool:
        """Return False for an addition that is not installed. `served`: the cluster's API groups."""
        return self.group not in ADDITIONS or self.group in served


_APPLIED = ("create", "patch")
_FOLLOWED = ("list", "watch")

NEEDS = (
    # State of the cluster.
    Need("Node", ("get", *_FOLLOWED, "patch")),  # to cordon one
    Need("Event", _FOLLOWED),
    Need("StorageClass", ("get", *_FOLLOWED)),
    Need("VolumeAttachment", _FOLLOWED),
    Need("Pod", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    Need("Pod", ("get",), subresource="log"),
    # Workspaces.
    Need("StatefulSet", ("list", "delete")),  # of workspaces that an earlier version of Berth started
    Need("Service", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    Need("PersistentVolumeClaim", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    # Patched to keep data when its PVC goes; created where a pool names its nodes' driver path; read to adopt one.
    Need("PersistentVolume", ("get", *_APPLIED)),
    Need("Secret", ("get", "list", *_APPLIED, "delete")),
    Need("ConfigMap", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    # Attempts of jobs, and a test of a node's GPUs.
    Need("Job", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    # Networks that workspaces must not reach.
    Need("EndpointSlice", ("list",)),
    Need("ServiceCIDR", ("list",)),
    # Usage of pods, and what doctor reads about storage, addresses and runtimes.
    Need("PodMetrics", ("list",)),
    Need("IPAddressPool", ("list",)),
    Need("RuntimeClass", ("get", "list")),
    Need("VolumeSnapshotClass", ("list",)),
    # Copies of volumes. A content is patched to keep the copy when its snapshot goes, and made if it is gone itself.
    Need("VolumeSnapshot", ("get", "create", "delete")),
    Need("VolumeSnapshotContent", ("get", "create", "patch", "delete")),
    Need("CSIDriver", ("list",)),
    Need("CSINode", ("list",)),
    # Kueue's objects, so that doctor can report where two queues hand out the same GPUs.
    Need("ResourceFlavorv1beta2", ("list",)),
    Need("ClusterQueuev1beta2", ("list",)),
    # Tenants.
    Need("Namespace", ("get", *_FOLLOWED, *_APPLIED)),
    Need("ServiceAccount", ("list", *_APPLIED)),
    Need("ResourceQuota", ("list", *_APPLIED)),
    Need("LimitRange", ("list", *_APPLIED)),
    Need("NetworkPolicy", ("list", *_APPLIED, "delete")),  # those of an attempt go with it
)

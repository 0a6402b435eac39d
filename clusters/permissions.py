"""What Berth must be allowed to do on a cluster: read by doctor, and the same as the ClusterRole in deploy/.

An apply of what is not there yet needs both patch and create. Secrets are never watched.
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
        """What an addition would be read for is not missed where it is not installed. `served`: API groups."""
        return self.group not in ADDITIONS or self.group in served


_APPLIED = ("create", "patch")
_FOLLOWED = ("list", "watch")

NEEDS = (
    # What is there, and what becomes of it.
    Need("Node", ("get", *_FOLLOWED, "patch")),  # to cordon one
    Need("Event", _FOLLOWED),
    Need("StorageClass", ("get", "list")),
    Need("Pod", ("get", *_FOLLOWED, *_APPLIED, "delete")),  # created in dry runs alone
    Need("Pod", ("get",), subresource="log"),
    # Workspaces.
    Need("StatefulSet", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    Need("StatefulSet", ("update",), subresource="finalizers"),  # to let what it owns delay its end
    Need("Service", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    Need("PersistentVolumeClaim", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    # To keep data when its claim goes; and made where a pool names the driver's path on its nodes.
    Need("PersistentVolume", _APPLIED),
    Need("Secret", ("get", "list", *_APPLIED, "delete")),
    Need("ConfigMap", ("get", "list", *_APPLIED, "delete")),
    # A test of a node's GPUs.
    Need("Job", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    # What pods use, and what doctor tells of storage, addresses and runtimes.
    Need("PodMetrics", ("list",)),
    Need("IPAddressPool", ("list",)),
    Need("RuntimeClass", ("get", "list")),
    Need("VolumeSnapshotClass", ("list",)),
    Need("CSIDriver", ("list",)),
    Need("CSINode", ("list",)),
    # Kueue's, so that doctor can say where two queues hand out the same GPUs.
    Need("ResourceFlavorv1beta2", ("list",)),
    Need("ClusterQueuev1beta2", ("list",)),
    # Tenants.
    Need("Namespace", ("get", "list", *_APPLIED)),
    Need("ServiceAccount", ("list", *_APPLIED)),
    Need("ResourceQuota", ("list", *_APPLIED)),
    Need("LimitRange", ("list", *_APPLIED)),
    Need("NetworkPolicy", ("list", *_APPLIED)),
)

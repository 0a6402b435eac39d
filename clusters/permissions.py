"""What Berth must be allowed to do on a cluster: read by doctor, and the same as the ClusterRole in deploy/.

An apply of what is not there yet needs both patch and create. Secrets are never watched.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusters.kinds import KINDS


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


_APPLIED = ("create", "patch")
_KEPT = ("get", "list", *_APPLIED, "delete")
_FOLLOWED = ("get", "list", "watch")

NEEDS = (
    # What is there, and what becomes of it.
    Need("Node", _FOLLOWED),
    Need("Event", _FOLLOWED),
    Need("StorageClass", ("get", "list")),
    Need("Pod", (*_FOLLOWED, "create", "delete")),  # created in dry runs alone
    Need("Pod", ("get",), subresource="log"),
    # Workspaces.
    Need("StatefulSet", (*_KEPT, "watch")),
    Need("Service", (*_KEPT, "watch")),
    Need("PersistentVolumeClaim", (*_KEPT, "watch")),
    Need("PersistentVolume", ("get", "patch")),  # to keep data when its claim goes
    Need("Secret", _KEPT),
    Need("ConfigMap", _KEPT),
    # Tenants.
    Need("Namespace", ("get", "list", *_APPLIED)),
    Need("ServiceAccount", ("get", *_APPLIED)),
    Need("ResourceQuota", ("get", *_APPLIED)),
    Need("LimitRange", ("get", *_APPLIED)),
    Need("NetworkPolicy", ("get", *_APPLIED)),
)


def rules() -> list[dict[str, list[str]]]:
    """As the rules of a ClusterRole."""
    return [
        {"apiGroups": [need.group], "resources": [need.resource], "verbs": sorted(need.verbs)}
        for need in NEEDS
    ]

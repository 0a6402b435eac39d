"""Rights that Berth's parts need on a cluster: read by doctor, and the same as the ClusterRoles in deploy/.

An apply that creates an object needs both patch and create. Secrets are never watched. Web, the SSH jump and the
migration need none; the collector's stand in its own manifest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusters.kinds import ADDITIONS, KINDS

if TYPE_CHECKING:
    from clusters.api import Api


@dataclass(frozen=True)
class Need:
    kind: str
    verbs: tuple[str, ...]
    subresource: str = ""
    name: str = ""  # of the one object that the right is for; empty: all

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


# What the watcher and the worker may do in namespaces of tenants, and in no other.
SECRETS_ROLE = "berth-secrets"
SECRETS = Need("Secret", ("list", "create", "patch", "delete"))

_APPLIED = ("create", "patch")
_FOLLOWED = ("list", "watch")

# Follows clusters, and makes and ends what workspaces, jobs and volumes are.
WATCHER = (
    Need("Node", _FOLLOWED),
    Need("Event", _FOLLOWED),
    Need("StorageClass", _FOLLOWED),
    Need("VolumeAttachment", _FOLLOWED),
    Need("Namespace", ("get", *_FOLLOWED, *_APPLIED)),
    Need("Pod", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    Need("StatefulSet", ("delete",)),  # of a workspace that an earlier version of Berth started
    Need("Service", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    Need("PersistentVolumeClaim", ("get", *_FOLLOWED, *_APPLIED, "delete")),
    # Patched to keep data when its PVC goes; created where a pool names its nodes' driver path; read to adopt one.
    Need("PersistentVolume", ("get", *_APPLIED)),
    Need("ConfigMap", (*_FOLLOWED, *_APPLIED)),
    Need("Job", ("get", "list", "create", "delete")),
    Need("ServiceAccount", _APPLIED),
    Need("ResourceQuota", _APPLIED),
    Need("LimitRange", _APPLIED),
    Need("NetworkPolicy", (*_APPLIED, "delete")),  # those of an attempt go with it
    # Secrets are granted in each tenant's namespace (clusters/isolation/granting.py).
    Need("RoleBinding", ("list", *_APPLIED)),
    Need("ClusterRole", ("bind",), name=SECRETS_ROLE),
    # Networks that workspaces must not reach, and what pods use.
    Need("EndpointSlice", ("list",)),
    Need("ServiceCIDR", ("list",)),
    Need("PodMetrics", ("list",)),
    # Copies of volumes. A content is patched to keep the copy when its snapshot goes, and made if it is gone itself.
    Need("VolumeSnapshotClass", ("list",)),
    Need("VolumeSnapshot", ("get", "create", "delete")),
    Need("VolumeSnapshotContent", ("get", "create", "patch", "delete")),
)

# Examines clusters, looks for drift and repairs it when an admin says so, tests GPUs and isolation, cordons nodes.
WORKER = (
    Need("Node", ("get", "list", "patch")),
    Need("Event", ("list",)),
    Need("Namespace", ("get", "list", *_APPLIED)),
    Need("Pod", ("get", "list", "patch", "delete")),
    Need("Pod", ("get",), subresource="log"),
    Need("StatefulSet", ("list", "delete")),
    Need("Service", ("get", "list", *_APPLIED, "delete")),
    Need("PersistentVolumeClaim", ("get", "list", "delete")),
    Need("PersistentVolume", ("patch",)),
    Need("ConfigMap", ("list", "delete")),
    Need("Job", ("get", "list", *_APPLIED, "delete")),
    Need("ServiceAccount", ("list", *_APPLIED)),
    Need("ResourceQuota", ("list", *_APPLIED)),
    Need("LimitRange", ("list", *_APPLIED)),
    Need("NetworkPolicy", ("list", *_APPLIED, "delete")),
    Need("EndpointSlice", ("list",)),
    Need("ServiceCIDR", ("list",)),
    Need("PodMetrics", ("list",)),
    # Read by doctor: storage, addresses, runtimes, and Kueue's queues for the same GPUs.
    Need("StorageClass", ("list",)),
    Need("VolumeSnapshotClass", ("list",)),
    Need("CSIDriver", ("list",)),
    Need("CSINode", ("list",)),
    Need("IPAddressPool", ("list",)),
    Need("RuntimeClass", ("list",)),
    Need("ResourceFlavorv1beta2", ("list",)),
    Need("ClusterQueuev1beta2", ("list",)),
)


def together(*parts: Iterable[Need]) -> tuple[Need, ...]:
    """Return the needs of several parts that share one account."""
    verbs: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for need in (need for part in parts for need in part):
        verbs[need.kind, need.subresource, need.name].update(dict.fromkeys(need.verbs))
    return tuple(
        Need(kind, tuple(found), subresource, name) for (kind, subresource, name), found in verbs.items()
    )


# What one account needs that all parts use, as where a kubeconfig leads to another cluster.
NEEDS = together(WATCHER, WORKER)
# Where each part has an account, doctor asks about the other's rights.
PARTS = {"watcher": WATCHER, "worker": (*WORKER, Need("SubjectAccessReview", ("create",)))}


def is_granted(api: Api, need: Need, verb: str, namespace: str = "", account: str = "") -> bool:
    """Return True if Berth has the right in the namespace, or in all of them if none is given.

    `account`: user name of another service account of Berth's that is asked about; empty: the one that asks.
    """
    attributes = {
        "group": need.group,
        "resource": need.resource.partition("/")[0],
        "subresource": need.subresource,
        "verb": verb,
        "namespace": namespace,
        "name": need.name,
    }
    spec: dict[str, Any] = {
        "resourceAttributes": {name: value for name, value in attributes.items() if value}
    }
    if account:
        spec |= {"user": account, "groups": groups_of(account)}
    kind = "SubjectAccessReview" if account else "SelfSubjectAccessReview"
    review = api.create({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
    return bool(review.get("status", {}).get("allowed"))


def groups_of(account: str) -> list[str]:
    """Groups of a service account: https://kubernetes.io/docs/reference/access-authn-authz/authentication/"""
    namespace = account.split(":")[2]
    return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]

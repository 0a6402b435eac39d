"""The kinds of Kubernetes objects that Berth uses, and where the API has them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True)
class Kind:
    name: str
    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of one object, or of their list (in all namespaces if `namespace` is None)."""
        parts = ["apis" if self.group else "api", self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part is not None]
        return "/" + "/".join(parts)


KUEUE, KUEUE_VERSIONS = "kueue.x-k8s.io", ("v1beta2", "v1beta1")
METALLB, METRICS, SNAPSHOTS = "metallb.io", "metrics.k8s.io", "snapshot.storage.k8s.io"
# Groups that a cluster serves only where something is installed beside Kubernetes itself.
ADDITIONS = frozenset({KUEUE, METALLB, METRICS, SNAPSHOTS})

KINDS = {
    kind.name: kind
    for kind in (
        Kind("Namespace", "", "v1", "namespaces", namespaced=False),
        Kind("Node", "", "v1", "nodes", namespaced=False),
        Kind("PersistentVolume", "", "v1", "persistentvolumes", namespaced=False),
        Kind("Pod", "", "v1", "pods"),
        Kind("Service", "", "v1", "services"),
        Kind("Secret", "", "v1", "secrets"),
        Kind("ConfigMap", "", "v1", "configmaps"),
        Kind("Event", "", "v1", "events"),
        Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims"),
        Kind("ServiceAccount", "", "v1", "serviceaccounts"),
        Kind("ResourceQuota", "", "v1", "resourcequotas"),
        Kind("LimitRange", "", "v1", "limitranges"),
        Kind("StatefulSet", "apps", "v1", "statefulsets"),
        Kind("Job", "batch", "v1", "jobs"),
        Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies"),
        Kind("ServiceCIDR", "networking.k8s.io", "v1", "servicecidrs", namespaced=False),
        Kind("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices"),
        Kind("StorageClass", "storage.k8s.io", "v1", "storageclasses", namespaced=False),
        Kind("VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", namespaced=False),
        Kind("CSIDriver", "storage.k8s.io", "v1", "csidrivers", namespaced=False),
        Kind("CSINode", "storage.k8s.io", "v1", "csinodes", namespaced=False),
        Kind("RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", namespaced=False),
        # Kinds of ADDITIONS. Berth writes snapshots, and reads the others.
        Kind("VolumeSnapshot", SNAPSHOTS, "v1", "volumesnapshots"),
        Kind("VolumeSnapshotContent", SNAPSHOTS, "v1", "volumesnapshotcontents", namespaced=False),
        Kind("VolumeSnapshotClass", SNAPSHOTS, "v1", "volumesnapshotclasses", namespaced=False),
        Kind("PodMetrics", METRICS, "v1beta1", "pods"),
        Kind("IPAddressPool", METALLB, "v1beta1", "ipaddresspools"),
        *(Kind(f"ResourceFlavor{v}", KUEUE, v, "resourceflavors", namespaced=False) for v in KUEUE_VERSIONS),
        *(Kind(f"ClusterQueue{v}", KUEUE, v, "clusterqueues", namespaced=False) for v in KUEUE_VERSIONS),
        Kind("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings"),
        Kind("ClusterRole", "rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False),
        Kind("SelfSubjectReview", "authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False),
        Kind("SubjectAccessReview", "authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False),
        Kind(
            "SelfSubjectAccessReview",
            "authorization.k8s.io",
            "v1",
            "selfsubjectaccessreviews",
            namespaced=False,
        ),
    )
}

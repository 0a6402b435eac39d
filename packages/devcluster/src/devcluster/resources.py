"""Kinds that the API serves: scopes, names and subresources. Discovery and paths are made from this one table."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, eq=False)  # compared by identity, for speed: one object per kind
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    in_all: bool = False
    generation: bool = False
    """Counts changes of its spec in metadata.generation."""
    returns_deleted: bool = False
    """A DELETE is answered with the object itself rather than with a Status."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def verbs(self) -> tuple[str, ...]:
        return tuple(v for v in VERBS if v != "deletecollection") if self.plural == "namespaces" else VERBS

    @property
    def list_kind(self) -> str:
        return self.kind + "List"


def _core(kind: str, plural: str, *short: str, **options: Any) -> Kind:
    return Kind("", "v1", kind, plural, short=short, **options)


POD = _core(
    "Pod",
    "pods",
    "po",
    subresources=("status", "log", "exec", "attach", "portforward", "binding", "eviction"),
    in_all=True,
    generation=True,
    returns_deleted=True,
)
NAMESPACE = _core("Namespace", "namespaces", "ns", namespaced=False, subresources=("finalize", "status"))
NODE = _core("Node", "nodes", "no", namespaced=False, subresources=("status",))
SERVICE = _core("Service", "services", "svc", subresources=("status",), in_all=True, returns_deleted=True)
SERVICE_ACCOUNT = _core(
    "ServiceAccount", "serviceaccounts", "sa", subresources=("token",), returns_deleted=True
)
CONFIG_MAP = _core("ConfigMap", "configmaps", "cm")
SECRET = _core("Secret", "secrets")
EVENT = _core("Event", "events", "ev")
PVC = _core(
    "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=("status",), returns_deleted=True
)
PV = _core(
    "PersistentVolume",
    "persistentvolumes",
    "pv",
    namespaced=False,
    subresources=("status",),
    returns_deleted=True,
)
RESOURCE_QUOTA = _core(
    "ResourceQuota", "resourcequotas", "quota", subresources=("status",), returns_deleted=True
)
LIMIT_RANGE = _core("LimitRange", "limitranges", "limits")
STATEFUL_SET = Kind(
    "apps",
    "v1",
    "StatefulSet",
    "statefulsets",
    short=("sts",),
    subresources=("scale", "status"),
    in_all=True,
    generation=True,
)
NETWORK_POLICY = Kind(
    "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short=("netpol",), generation=True
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
DEPLOYMENT = Kind(
    "apps",
    "v1",
    "Deployment",
    "deployments",
    short=("deploy",),
    subresources=("scale", "status"),
    in_all=True,
    generation=True,
)
REPLICA_SET = Kind(
    "apps",
    "v1",
    "ReplicaSet",
    "replicasets",
    short=("rs",),
    subresources=("scale", "status"),
    in_all=True,
    generation=True,
)
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
DAEMON_SET = Kind(
    "apps",
    "v1",
    "DaemonSet",
    "daemonsets",
    short=("ds",),
    subresources=("status",),
    in_all=True,
    generation=True,
)
JOB = Kind("batch", "v1", "Job", "jobs", subresources=("status",), in_all=True, generation=True)
POD_DISRUPTION_BUDGET = Kind(
    "policy",
    "v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    short=("pdb",),
    subresources=("status",),
    generation=True,
)
STORAGE_CLASS = Kind(
    "storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short=("sc",)
)
CSI_DRIVER = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
VOLUME_ATTACHMENT = Kind(
    "storage.k8s.io",
    "v1",
    "VolumeAttachment",
    "volumeattachments",
    namespaced=False,
    subresources=("status",),
)
_SNAPSHOTS = "snapshot.storage.k8s.io"
SNAPSHOT = Kind(
    _SNAPSHOTS,
    "v1",
    "VolumeSnapshot",
    "volumesnapshots",
    short=("vs",),
    subresources=("status",),
    generation=True,
)
SNAPSHOT_CONTENT = Kind(
    _SNAPSHOTS,
    "v1",
    "VolumeSnapshotContent",
    "volumesnapshotcontents",
    namespaced=False,
    short=("vsc", "vscs"),
    subresources=("status",),
    generation=True,
)
SNAPSHOT_CLASS = Kind(
    _SNAPSHOTS,
    "v1",
    "VolumeSnapshotClass",
    "volumesnapshotclasses",
    namespaced=False,
    short=("vsclass", "vsclasses"),
    generation=True,
)
SERVICE_CIDR = Kind(
    "networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", namespaced=False, subresources=("status",)
)
PRIORITY_CLASS = Kind(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short=("pc",)
)
_RBAC = "rbac.authorization.k8s.io"
ROLE = Kind(_RBAC, "v1", "Role", "roles")
ROLE_BINDING = Kind(_RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Kind(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)

KINDS: tuple[Kind, ...] = (
    CONFIG_MAP,
    EVENT,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    PVC,
    PV,
    POD,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE_ACCOUNT,
    SERVICE,
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    JOB,
    STORAGE_CLASS,
    CSI_DRIVER,
    VOLUME_ATTACHMENT,
    SNAPSHOT,
    SNAPSHOT_CONTENT,
    SNAPSHOT_CLASS,
    NETWORK_POLICY,
    Kind("networking.k8s.io", "v1", "Ingress", "ingresses", short=("ing",), generation=True),
    SERVICE_CIDR,
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    POD_DISRUPTION_BUDGET,
    LEASE,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    PRIORITY_CLASS,
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False),
)

_ACCESS, _IDENTITY = "authorization.k8s.io", "authentication.k8s.io"
SELF_ACCESS_REVIEW = Kind(_ACCESS, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
ACCESS_REVIEW = Kind(_ACCESS, "v1", "SubjectAccessReview", "subjectaccessreviews", False)
RULES_REVIEW = Kind(_ACCESS, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False)
SELF_REVIEW = Kind(_IDENTITY, "v1", "SelfSubjectReview", "selfsubjectreviews", False)
TOKEN_REVIEW = Kind(_IDENTITY, "v1", "TokenReview", "tokenreviews", False)
REVIEWS = (SELF_ACCESS_REVIEW, ACCESS_REVIEW, RULES_REVIEW, SELF_REVIEW, TOKEN_REVIEW)
"""Answered, never stored."""
TOKEN_REQUEST = Kind(_IDENTITY, "v1", "TokenRequest", "tokenrequests")
"""What serviceaccounts/token takes."""

ALIASES = {("events.k8s.io", "events"): EVENT}
"""Paths that serve another group's objects."""

_BY_PATH = {(k.group, k.plural): k for k in (*KINDS, *REVIEWS)} | ALIASES
_BY_KIND = {(k.api_version, k.kind): k for k in KINDS}


def kind_at(group: str, version: str, plural: str) -> Kind | None:
    return _BY_PATH.get((group, plural)) if version == "v1" else None


def kind_of(api_version: str, kind: str) -> Kind | None:
    return _BY_KIND.get((api_version, kind))


def groups() -> list[str]:
    """Return the API groups in the order of discovery, without the core group."""
    seen = dict.fromkeys(k.group for k in KINDS if k.group)
    return [*seen, "events.k8s.io", _ACCESS, _IDENTITY]


def _resource(kind: Kind) -> Iterator[Obj]:
    singular = kind.kind.lower()
    entry: Obj = {"name": kind.plural, "singularName": singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    if kind.short:
        entry["shortNames"] = list(kind.short)
    if kind.in_all:
        entry["categories"] = ["all"]
    if kind in KINDS:
        entry["storageVersionHash"] = _storage_version(kind)
    yield entry
    for sub in kind.subresources:
        part: Obj = {"name": f"{kind.plural}/{sub}", "singularName": "", "namespaced": kind.namespaced}
        yield part | _SUBRESOURCES.get(sub, {"kind": kind.kind, "verbs": ["get", "patch", "update"]})


def _storage_version(kind: Kind) -> str:
    """Return the hash of the storage version, by which clients notice that it changed."""
    known = f"{kind.group}/{kind.version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(known.encode()).digest()[:8]).decode()


_SUBRESOURCES: dict[str, Obj] = {
    "log": {"kind": "Pod", "verbs": ["get"]},
    "exec": {"kind": "PodExecOptions", "verbs": ["create", "get"]},
    "attach": {"kind": "PodAttachOptions", "verbs": ["create", "get"]},
    "portforward": {"kind": "PodPortForwardOptions", "verbs": ["create", "get"]},
    "binding": {"kind": "Binding", "verbs": ["create"]},
    "eviction": {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
    "finalize": {"kind": "Namespace", "verbs": ["update"]},
    "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]},
    "token": {
        "group": "authentication.k8s.io",
        "version": "v1",
        "kind": "TokenRequest",
        "verbs": ["create"],
    },
}


def resource_list(group: str) -> Obj:
    """Return the discovery document of one group version."""
    found = [entry for k in KINDS if k.group == group for entry in _resource(k)]
    if group == "events.k8s.io":
        found = list(_resource(EVENT))
    if group in (_ACCESS, _IDENTITY):
        asked = [kind for kind in REVIEWS if kind.group == group]
        found = [entry | {"verbs": ["create"]} for kind in asked for entry in _resource(kind)]
    found.sort(key=lambda r: str(r["name"]))
    body: Obj = {"kind": "APIResourceList"}
    if group:
        body["apiVersion"] = "v1"
    return body | {"groupVersion": f"{group}/v1" if group else "v1", "resources": found}


def group_list() -> Obj:
    entries = [group_entry(group, "v1") for group in groups()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": entries}


def group_entry(group: str, version: str) -> Obj:
    """Return the entry of a single-version group in the list of groups."""
    about = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [about], "preferredVersion": about}

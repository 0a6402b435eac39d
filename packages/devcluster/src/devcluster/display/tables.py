"""Tables for kubectl: the columns of each kind, and an object's row, as Kubernetes 1.36 prints them."""

from collections.abc import Callable

from devcluster.display import rows
from devcluster.display.podrow import pod_row
from devcluster.display.printing import Row
from devcluster.resources import Kind, Obj

Printer = Callable[[Obj], Row]
_TYPES = {"#": "integer", "?": "boolean", "@": "date"}


def columns(kind: Kind) -> list[Obj]:
    return [_column(name) for name in _table(kind)[0].split(", ")]


def cells(kind: Kind, obj: Obj) -> Row:
    return _table(kind)[1](obj)


def _column(name: str) -> Obj:
    """Return a column. `Name*` is shown by -o wide only; `Name#`, `Name?`, `Name@` are a number, a truth and a date."""
    plain = name.rstrip("*#?@")
    kind = next((_TYPES[mark] for mark in name[len(plain) :] if mark in _TYPES), "string")
    format_ = "name" if plain in ("Name", "Attacher") else ""
    priority = 1 if "*" in name else 0
    return {"name": plain, "type": kind, "format": format_, "description": "", "priority": priority}


_WORKLOAD = "Containers*, Images*"
_ROLE = ("Name, Created At@", rows.created)
_BINDING = ("Name, Role, Age, Users*, Groups*, ServiceAccounts*", rows.binding)
_TABLES: dict[str, tuple[str, Printer]] = {
    "ClusterRole": _ROLE,
    "ClusterRoleBinding": _BINDING,
    "ConfigMap": ("Name, Data, Age", rows.config_map),
    "ControllerRevision": ("Name, Controller, Revision, Age", rows.revision),
    "CSIDriver": (
        "Name, AttachRequired?, PodInfoOnMount?, StorageCapacity?, TokenRequests, RequiresRepublish?, Modes, Age",
        rows.driver,
    ),
    "DaemonSet": (
        (
            "Name, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age, "
            f"{_WORKLOAD}, Selector*"
        ),
        rows.daemon_set,
    ),
    "Deployment": (f"Name, Ready, Up-to-date, Available, Age, {_WORKLOAD}, Selector*", rows.deployment),
    "Event": (
        "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*",
        rows.event,
    ),
    "Ingress": ("Name, Class, Hosts, Address, Ports, Age", rows.ingress),
    "Job": (f"Name, Status, Completions, Duration, Age, {_WORKLOAD}, Selector*", rows.job),
    "Lease": ("Name, Holder, Age", rows.lease),
    "LimitRange": ("Name, Created At@", rows.created),
    "Namespace": ("Name, Status, Age", rows.namespace),
    "NetworkPolicy": ("Name, Pod-Selector, Age", rows.network_policy),
    "Node": (
        (
            "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, "
            "Container-Runtime*"
        ),
        rows.node,
    ),
    "PersistentVolume": (
        (
            "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, "
            "Reason, Age, VolumeMode*"
        ),
        rows.volume,
    ),
    "PersistentVolumeClaim": (
        "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*",
        rows.claim,
    ),
    "Pod": ("Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*", pod_row),
    "PodDisruptionBudget": (
        "Name, Min Available, Max Unavailable, Allowed Disruptions#, Age",
        rows.disruption_budget,
    ),
    "PriorityClass": ("Name, Value#, Global-Default?, Age, PreemptionPolicy", rows.priority_class),
    "ReplicaSet": (f"Name, Desired#, Current#, Ready#, Age, {_WORKLOAD}, Selector*", rows.replica_set),
    "ResourceQuota": ("Name, Request, Limit, Age", rows.quota),
    "Role": _ROLE,
    "RoleBinding": _BINDING,
    "RuntimeClass": ("Name, Handler, Age", rows.runtime_class),
    "Secret": ("Name, Type, Data, Age", rows.secret),
    "Service": ("Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*", rows.service),
    "StatefulSet": (f"Name, Ready, Age, {_WORKLOAD}", rows.stateful_set),
    "StorageClass": (
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        rows.storage_class,
    ),
    "VolumeAttachment": ("Name, Attacher, PV, Node, Attached?, Age", rows.attachment),
    "VolumeSnapshot": (
        (
            "Name, ReadyToUse?, SourcePVC, SourceSnapshotContent, RestoreSize, SnapshotClass, SnapshotContent, "
            "CreationTime@, Age@"
        ),
        rows.snapshot,
    ),
    "VolumeSnapshotClass": ("Name, Driver, DeletionPolicy, Age@", rows.snapshot_class),
    "VolumeSnapshotContent": (
        (
            "Name, ReadyToUse?, RestoreSize#, DeletionPolicy, Driver, VolumeSnapshotClass, VolumeSnapshot, "
            "VolumeSnapshotNamespace, Age@"
        ),
        rows.snapshot_content,
    ),
}
_PLAIN: tuple[str, Printer] = ("Name, Age", rows.plain)


def _table(kind: Kind) -> tuple[str, Printer]:
    return _TABLES.get(kind.kind, _PLAIN)

"""How lists and maps merge: which lists are keyed, which are sets, which values are one piece (x-kubernetes-*)."""

import json
from typing import Any

LIST_KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "secrets": ("name",),
}
SETS = frozenset({"finalizers"})
ATOMIC_MAPS = frozenset(
    {
        "configMapKeyRef",
        "fieldRef",
        "involvedObject",
        "nodeSelector",
        "persistentVolumeClaimRef",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "resourceFieldRef",
        "scaleTargetRef",
        "secretKeyRef",
        "secretRef",
        "selector",
        "nodePublishSecretRef",
        "ownerReferences[]",
    }
)
"""Maps that one manager owns whole; a child of theirs is nobody's alone. `name[]` is an item of a keyed list."""

SKELETON: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}
"""What every object has, however empty: nobody owns these members themselves."""

_TEMPLATE: dict[str, Any] = {"metadata": {}, "spec": {"containers": []}}
SKELETONS: dict[str, Any] = {
    "Pod": {"spec": {"containers": []}},
    "Deployment": {"spec": {"strategy": {}, "template": _TEMPLATE}},
    "StatefulSet": {"spec": {"updateStrategy": {}, "template": _TEMPLATE}},
    "ReplicaSet": {"spec": {"template": _TEMPLATE}},
    "DaemonSet": {"spec": {"updateStrategy": {}, "template": _TEMPLATE}},
    "Job": {"spec": {"template": _TEMPLATE}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}},
    "Service": {"status": {"loadBalancer": {}}},
    "Event": {"source": {}, "involvedObject": {}, "eventTime": None, "reportingInstance": ""},
    "Node": {"status": {"nodeInfo": {}, "daemonEndpoints": {"kubeletEndpoint": {}}}},
}


def list_keys(parent: str, items: list[Any]) -> tuple[str, ...]:
    """The keys of a keyed list, or () where the list is a set or one piece."""
    if parent == "ports":
        in_container = any(isinstance(i, dict) and "containerPort" in i for i in items)
        return ("containerPort", "protocol") if in_container else ("port", "protocol")
    keys = LIST_KEYS.get(parent, ())
    return keys if all(isinstance(i, dict) for i in items) else ()


def item_key(keys: tuple[str, ...], item: dict[str, Any]) -> str:
    """A keyed list item as a FieldsV1 path element."""
    found = {k: item.get(k, "TCP" if k == "protocol" else "") for k in sorted(keys)}
    return "k:" + json.dumps(found, separators=(",", ":"))


def strategic_key(parent: str, items: list[Any]) -> str:
    """The one key by which a strategic merge patch matches items."""
    keys = list_keys(parent, items)
    return keys[0] if keys else ""

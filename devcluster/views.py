"""How objects go out: whole, as lists, as tables for kubectl, or as their metadata alone."""

from collections.abc import Callable, Iterable
from typing import Any

from devcluster.clock import age_seconds
from devcluster.resources import Kind, Obj
from devcluster.store import encode

Row = list[Any]


def typed(kind: Kind, obj: Obj) -> Obj:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}


def typed_json(kind: Kind, encoded: bytes) -> bytes:
    """The same of an object that is JSON already."""
    return b'{"kind":"%b","apiVersion":"%b",%b' % (kind.kind.encode(), kind.api_version.encode(), encoded[1:])


def object_list(kind: Kind, items: Iterable[bytes], metadata: Obj) -> bytes:
    """A list, put together from its items' JSON."""
    head = encode({"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata})
    return b'%b,"items":[%b]}\n' % (head[:-1], b",".join(items))


def metadata_only(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def metadata_list(items: list[Obj], metadata: Obj) -> Obj:
    head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": metadata, "items": [metadata_only(o) for o in items]}


def table(kind: Kind, items: Iterable[Obj], metadata: Obj) -> Obj:
    columns, row = TABLES.get(kind.kind, _PLAIN)
    definitions = [
        {
            "name": name.strip("*"),
            "type": "integer" if name in _INTEGERS else "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": 1 if name.endswith("*") else 0,
        }
        for name in columns
    ]
    rows = [{"cells": row(o), "object": metadata_only(o)} for o in items]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**head, "columnDefinitions": definitions, "rows": rows}


_INTEGERS = {"Restarts"}


def age(obj: Obj) -> str:
    return short_time(age_seconds(obj["metadata"]["creationTimestamp"]))


def short_time(seconds: float) -> str:
    s = max(int(seconds), 0)
    if s < 120:
        return f"{s}s"
    if s < 600:
        return f"{s // 60}m{s % 60}s" if s % 60 else f"{s // 60}m"
    if s < 3 * 3600:
        return f"{s // 60}m"
    if s < 8 * 3600:
        return f"{s // 3600}h{s % 3600 // 60}m"
    if s < 48 * 3600:
        return f"{s // 3600}h"
    return f"{s // 86400}d"


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _pod(o: Obj) -> Row:
    status = o.get("status", {})
    containers = status.get("containerStatuses", [])
    ready = f"{sum(bool(c.get('ready')) for c in containers)}/{len(o['spec']['containers'])}"
    restarts = sum(c.get("restartCount", 0) for c in containers)
    spec = o["spec"]
    return [
        _name(o),
        ready,
        _pod_reason(o),
        restarts,
        age(o),
        status.get("podIP", "<none>"),
        spec.get("nodeName", "<none>"),
        "<none>",
        "<none>",
    ]


def _pod_reason(o: Obj) -> str:
    status = o.get("status", {})
    reason = status.get("reason") or status.get("phase", "Unknown")
    for container in status.get("containerStatuses", []):
        state = container.get("state", {})
        if waiting := state.get("waiting", {}).get("reason"):
            reason = waiting
        elif terminated := state.get("terminated"):
            reason = terminated.get("reason") or f"ExitCode:{terminated.get('exitCode')}"
    return "Terminating" if "deletionTimestamp" in o["metadata"] else str(reason)


def _node(o: Obj) -> Row:
    conditions = {c["type"]: c["status"] for c in o.get("status", {}).get("conditions", [])}
    state = "Ready" if conditions.get("Ready") == "True" else "NotReady"
    if o.get("spec", {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(k.removeprefix(prefix) for k in o["metadata"].get("labels", {}) if k.startswith(prefix))
    version = o.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", "")
    return [_name(o), state, ",".join(roles) or "<none>", age(o), version]


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if "nodePort" in port else ""
    return f"{port['port']}{node_port}/{port['protocol']}"


def _service(o: Obj) -> Row:
    spec = o["spec"]
    ingress = o.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    external = ",".join(i.get("ip", i.get("hostname", "")) for i in ingress)
    if not external:
        external = "<pending>" if spec["type"] == "LoadBalancer" else "<none>"
    ports = [_port(p) for p in spec.get("ports", [])]
    selector = ",".join(f"{k}={v}" for k, v in (spec.get("selector") or {}).items())
    return [
        _name(o),
        spec["type"],
        spec["clusterIP"],
        external,
        ",".join(ports),
        age(o),
        selector or "<none>",
    ]


def _claim(o: Obj) -> Row:
    short = {
        "ReadWriteOnce": "RWO",
        "ReadOnlyMany": "ROX",
        "ReadWriteMany": "RWX",
        "ReadWriteOncePod": "RWOP",
    }
    spec, status = o["spec"], o.get("status", {})
    phase = "Terminating" if "deletionTimestamp" in o["metadata"] else status.get("phase")
    modes = ",".join(short.get(m, m) for m in status.get("accessModes", []))
    size = status.get("capacity", {}).get("storage", "")
    return [
        _name(o),
        phase,
        spec.get("volumeName", ""),
        size,
        modes,
        spec.get("storageClassName", ""),
        "<unset>",
        age(o),
        spec.get("volumeMode"),
    ]


def _volume(o: Obj) -> Row:
    spec, status = o["spec"], o.get("status", {})
    claim = spec.get("claimRef") or {}
    held_by = f"{claim['namespace']}/{claim['name']}" if claim else ""
    modes = ",".join(spec.get("accessModes", []))
    return [
        _name(o),
        spec["capacity"]["storage"],
        modes,
        spec["persistentVolumeReclaimPolicy"],
        status.get("phase"),
        held_by,
        spec.get("storageClassName", ""),
        status.get("reason", ""),
        age(o),
    ]


def _event(o: Obj) -> Row:
    seen = o.get("lastTimestamp") or o.get("eventTime") or o["metadata"]["creationTimestamp"]
    ref = o["involvedObject"]
    target = f"{ref.get('kind', '').lower()}/{ref.get('name', '')}"
    return [
        short_time(age_seconds(seen)),
        o.get("type"),
        o.get("reason"),
        target,
        o.get("message", "").strip(),
    ]


def _stateful_set(o: Obj) -> Row:
    containers = o["spec"]["template"]["spec"]["containers"]
    ready = f"{o['status'].get('readyReplicas', 0)}/{o['spec']['replicas']}"
    return [
        _name(o),
        ready,
        age(o),
        ",".join(c["name"] for c in containers),
        ",".join(c["image"] for c in containers),
    ]


def _namespace(o: Obj) -> Row:
    return [_name(o), o["status"]["phase"], age(o)]


def _config_map(o: Obj) -> Row:
    return [_name(o), len(o.get("data") or {}) + len(o.get("binaryData") or {}), age(o)]


def _secret(o: Obj) -> Row:
    return [_name(o), o.get("type"), len(o.get("data") or {}), age(o)]


def _storage_class(o: Obj) -> Row:
    annotations = o["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    grow = bool(o.get("allowVolumeExpansion"))
    return [
        _name(o) + (" (default)" if default else ""),
        o["provisioner"],
        o["reclaimPolicy"],
        o["volumeBindingMode"],
        grow,
        age(o),
    ]


TABLES: dict[str, tuple[tuple[str, ...], Callable[[Obj], Row]]] = {
    "Pod": (
        ("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"),
        _pod,
    ),
    "Node": (("Name", "Status", "Roles", "Age", "Version"), _node),
    "Service": (("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"), _service),
    "PersistentVolumeClaim": (
        (
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            "VolumeMode*",
        ),
        _claim,
    ),
    "PersistentVolume": (
        (
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "Reason",
            "Age",
        ),
        _volume,
    ),
    "Event": (("Last Seen", "Type", "Reason", "Object", "Message"), _event),
    "StatefulSet": (("Name", "Ready", "Age", "Containers*", "Images*"), _stateful_set),
    "Namespace": (("Name", "Status", "Age"), _namespace),
    "ConfigMap": (("Name", "Data", "Age"), _config_map),
    "Secret": (("Name", "Type", "Data", "Age"), _secret),
    "StorageClass": (
        ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        _storage_class,
    ),
}
_PLAIN: tuple[tuple[str, ...], Callable[[Obj], Row]] = (("Name", "Age"), lambda o: [_name(o), age(o)])


def dump(body: Any) -> bytes:
    return encode(body) + b"\n"

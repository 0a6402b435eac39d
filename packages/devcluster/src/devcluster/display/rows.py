"""Rows of kubectl's tables for an object of each kind, in the words of Kubernetes 1.36."""

from collections.abc import Iterable, Mapping

from devcluster.display.printing import Row, age, name_of, short_time, since
from devcluster.resources import Obj
from devcluster.values.clock import age_seconds, parse


def _labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted((labels or {}).items())) or "<none>"


def _expression(expression: Obj) -> str:
    key, values = expression["key"], ",".join(sorted(expression.get("values") or []))
    how = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}
    return how[expression["operator"]].format(key, values)


def _selector(selector: Obj | None) -> str:
    labels = {k: f"{k}={v}" for k, v in ((selector or {}).get("matchLabels") or {}).items()}
    others = {e["key"]: _expression(e) for e in (selector or {}).get("matchExpressions") or []}
    return ",".join(text for _, text in sorted([*labels.items(), *others.items()])) or "<none>"


def _containers(template: Obj) -> Row:
    containers = template["spec"]["containers"]
    return [",".join(c["name"] for c in containers), ",".join(c["image"] for c in containers)]


def _terminating(obj: Obj, otherwise: str) -> str:
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else otherwise


def node(o: Obj) -> Row:
    status, labels = o.get("status", {}), o["metadata"].get("labels", {})
    ready = next((c["status"] for c in status.get("conditions", []) if c["type"] == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    if o.get("spec", {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = {k.removeprefix(prefix) for k in labels if k.startswith(prefix)}
    if role := labels.get("kubernetes.io/role"):
        roles.add(role)
    info = status.get("nodeInfo", {})
    kernel = info.get("kernelVersion") or "<unknown>"
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name_of(o),
        state,
        ",".join(sorted(roles)) or "<none>",
        age(o),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _address(status: Obj, kind: str) -> str:
    return next((a["address"] for a in status.get("addresses", []) if a["type"] == kind), "<none>")


def _balanced(o: Obj) -> list[str]:
    points = o.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    return sorted({p.get("ip") or p.get("hostname", "") for p in points})


def _external(o: Obj) -> str:
    spec = o["spec"]
    if spec["type"] == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = (_balanced(o) if spec["type"] == "LoadBalancer" else []) + spec.get("externalIPs", [])
    return ",".join(addresses) or ("<pending>" if spec["type"] == "LoadBalancer" else "<none>")


def _port(port: Obj) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node_port}/{port['protocol']}"


def service(o: Obj) -> Row:
    spec = o["spec"]
    address = next(iter(spec.get("clusterIPs") or []), "<none>")
    ports = ",".join(_port(p) for p in spec.get("ports") or []) or "<none>"
    return [name_of(o), spec["type"], address, _external(o), ports, age(o), _labels(spec.get("selector"))]


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Iterable[str]) -> str:
    there = set(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in there)


def claim(o: Obj) -> Row:
    spec, status = o["spec"], o.get("status", {})
    bound = bool(spec.get("volumeName"))
    return [
        name_of(o),
        _terminating(o, status.get("phase", "")),
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", "0") if bound else "",
        _modes(status.get("accessModes", [])) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", "<unset>"),
        age(o),
        spec.get("volumeMode", "<unset>"),
    ]


def volume(o: Obj) -> Row:
    spec, status = o["spec"], o.get("status", {})
    claim = spec.get("claimRef")
    return [
        name_of(o),
        spec["capacity"]["storage"],
        _modes(spec.get("accessModes", [])),
        spec["persistentVolumeReclaimPolicy"],
        _terminating(o, status.get("phase", "")),
        f"{claim['namespace']}/{claim['name']}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", "<unset>"),
        status.get("reason", ""),
        age(o),
        spec.get("volumeMode", "<unset>"),
    ]


def event(o: Obj) -> Row:
    series = o.get("series") or {}
    first = o.get("firstTimestamp") or o.get("eventTime")
    last = series.get("lastObservedTime") or o.get("lastTimestamp") or first
    ref, source = o["involvedObject"], o.get("source") or {}
    parts = (
        source.get("component") or o.get("reportingComponent"),
        source.get("host") or o.get("reportingInstance"),
    )
    return [
        since(last),
        o.get("type"),
        o.get("reason"),
        "/".join(part for part in (ref.get("kind", "").lower(), ref.get("name", "")) if part),
        ref.get("fieldPath", ""),
        ", ".join(part for part in parts if part),
        o.get("message", "").strip(),
        since(first),
        series.get("count") or o.get("count") or 1,
        name_of(o),
    ]


def stateful_set(o: Obj) -> Row:
    return [name_of(o), _of_wanted(o), age(o), *_containers(o["spec"]["template"])]


def _of_wanted(o: Obj) -> str:
    return f"{o.get('status', {}).get('readyReplicas', 0)}/{o['spec'].get('replicas', 1)}"


def deployment(o: Obj) -> Row:
    status, spec = o.get("status", {}), o["spec"]
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [
        name_of(o),
        _of_wanted(o),
        *counts,
        age(o),
        *_containers(spec["template"]),
        _selector(spec.get("selector")),
    ]


def replica_set(o: Obj) -> Row:
    status, spec = o.get("status", {}), o["spec"]
    counts = [spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(o), *counts, age(o), *_containers(spec["template"]), _selector(spec.get("selector"))]


def daemon_set(o: Obj) -> Row:
    status, spec = o.get("status", {}), o["spec"]
    counted = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
    counts = [status.get(c, 0) for c in (*counted, "updatedNumberScheduled", "numberAvailable")]
    wide = [*_containers(spec["template"]), _selector(spec.get("selector"))]
    return [name_of(o), *counts, _labels(spec["template"]["spec"].get("nodeSelector")), age(o), *wide]


def job(o: Obj) -> Row:
    spec, status = o["spec"], o.get("status", {})
    held = {c["type"] for c in status.get("conditions", []) if c["status"] == "True"}
    state = "Complete" if "Complete" in held else "Failed" if "Failed" in held else _terminating(o, "")
    state = state or next(
        (c for c in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if c in held), "Running"
    )
    wanted, parallel = spec.get("completions"), spec.get("parallelism", 1)
    of = str(wanted) if wanted is not None else f"1 of {parallel}" if parallel > 1 else "1"
    took = ""
    if started := status.get("startTime"):
        ended = status.get("completionTime")
        took = short_time((parse(ended) - parse(started)).total_seconds() if ended else age_seconds(started))
    wide = [*_containers(spec["template"]), _selector(spec.get("selector"))]
    return [name_of(o), state, f"{status.get('succeeded', 0)}/{of}", took, age(o), *wide]


def quota(o: Obj) -> Row:
    status = o.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})

    def told(limits: bool) -> str:
        keys = (k for k in sorted(hard) if k.startswith("limits.") == limits)
        return ", ".join(f"{k}: {used.get(k, '0')}/{hard[k]}" for k in keys)

    return [name_of(o), told(limits=False), told(limits=True), age(o)]


def storage_class(o: Obj) -> Row:
    annotations = o["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    name = name_of(o) + (" (default)" if default else "")
    grow = bool(o.get("allowVolumeExpansion"))
    return [name, o["provisioner"], o["reclaimPolicy"], o["volumeBindingMode"], grow, age(o)]


def binding(o: Obj) -> Row:
    subjects = o.get("subjects") or []
    users = [s["name"] for s in subjects if s["kind"] == "User"]
    groups = [s["name"] for s in subjects if s["kind"] == "Group"]
    accounts = [f"{s.get('namespace', '')}/{s['name']}" for s in subjects if s["kind"] == "ServiceAccount"]
    role = o["roleRef"]
    return [name_of(o), f"{role['kind']}/{role['name']}", age(o), *map(", ".join, (users, groups, accounts))]


def ingress(o: Obj) -> Row:
    spec = o.get("spec", {})
    rules = spec.get("rules") or []
    hosts = [r["host"] for r in rules if r.get("host")][:3]
    told = ",".join(hosts) + (f" + {len(rules) - 3} more..." if len(rules) > 3 else "") if hosts else "*"
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(o), spec.get("ingressClassName", "<none>"), told, ",".join(_balanced(o)), ports, age(o)]


def network_policy(o: Obj) -> Row:
    return [name_of(o), _selector(o["spec"].get("podSelector")), age(o)]


def disruption_budget(o: Obj) -> Row:
    spec, status = o.get("spec", {}), o.get("status", {})
    bounds = [str(spec.get(b, "N/A")) for b in ("minAvailable", "maxUnavailable")]
    return [name_of(o), *bounds, status.get("disruptionsAllowed", 0), age(o)]


def driver(o: Obj) -> Row:
    spec = o.get("spec", {})
    tokens = spec.get("tokenRequests")
    return [
        name_of(o),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        "<unset>" if tokens is None else ",".join(t.get("audience", "") for t in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or []) or "<none>",
        age(o),
    ]


def attachment(o: Obj) -> Row:
    spec = o["spec"]
    volume = spec["source"].get("persistentVolumeName", "")
    return [
        name_of(o),
        spec["attacher"],
        volume,
        spec["nodeName"],
        o.get("status", {}).get("attached", False),
        age(o),
    ]


def snapshot(o: Obj) -> Row:
    spec, status = o["spec"], o.get("status") or {}
    source = spec["source"]
    return [
        name_of(o),
        status.get("readyToUse"),
        source.get("persistentVolumeClaimName"),
        source.get("volumeSnapshotContentName"),
        status.get("restoreSize"),
        spec.get("volumeSnapshotClassName"),
        status.get("boundVolumeSnapshotContentName"),
        since(status["creationTime"]) if "creationTime" in status else None,
        age(o),
    ]


def snapshot_content(o: Obj) -> Row:
    spec, status = o["spec"], o.get("status") or {}
    of, size = spec["volumeSnapshotRef"], status.get("restoreSize")
    kept = [spec["deletionPolicy"], spec["driver"], spec.get("volumeSnapshotClassName")]
    return [name_of(o), status.get("readyToUse"), size, *kept, of["name"], of["namespace"], age(o)]


def snapshot_class(o: Obj) -> Row:
    return [name_of(o), o["driver"], o["deletionPolicy"], age(o)]


def priority_class(o: Obj) -> Row:
    return [name_of(o), o["value"], o.get("globalDefault", False), age(o), o.get("preemptionPolicy", "")]


def revision(o: Obj) -> Row:
    owner: Obj = next((r for r in o["metadata"].get("ownerReferences", []) if r.get("controller")), {})
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = ".".join(part for part in (owner.get("kind", ""), group) if part).lower()
    return [name_of(o), f"{kind}/{owner['name']}" if owner else "<none>", o["revision"], age(o)]


def created(o: Obj) -> Row:
    return [name_of(o), o["metadata"]["creationTimestamp"]]


def config_map(o: Obj) -> Row:
    return [name_of(o), len(o.get("data") or {}) + len(o.get("binaryData") or {}), age(o)]


def secret(o: Obj) -> Row:
    return [name_of(o), o.get("type"), len(o.get("data") or {}), age(o)]


def lease(o: Obj) -> Row:
    return [name_of(o), o.get("spec", {}).get("holderIdentity", ""), age(o)]


def namespace(o: Obj) -> Row:
    return [name_of(o), o["status"]["phase"], age(o)]


def runtime_class(o: Obj) -> Row:
    return [name_of(o), o["handler"], age(o)]


def plain(o: Obj) -> Row:
    return [name_of(o), age(o)]

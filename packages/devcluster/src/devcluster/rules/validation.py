"""Refusals of the API server, in its words: 400 for unreadable requests, 422 for objects that make no sense."""

from collections.abc import Callable, Iterator

from devcluster.access import roles
from devcluster.errors import (
    Cause,
    duplicate,
    field_not_found,
    forbidden_field,
    invalid,
    invalid_value,
    not_supported,
    required,
)
from devcluster.resources import Kind, Obj
from devcluster.rules import amounts, jobvalidation, placement, runtimeclasses, volumepaths, volumerules
from devcluster.values.names import (
    KEY,
    LABEL,
    LABEL_VALUE,
    NOT_A_KEY,
    NOT_A_LABEL,
    NOT_A_LABEL_VALUE,
    NOT_A_SUBDOMAIN,
    SUBDOMAIN,
)
from devcluster.values.quantity import milli
from devcluster.values.selectors import match_labels

POD_SPEC_IS_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
STATEFUL_SPEC_IS_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
CLAIM_SPEC_IS_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName"
    " for bound claims"
)


def validate(kind: Kind, new: Obj, old: Obj | None) -> None:
    """Raise ApiError 422 for an object that breaks the rules of its kind; `old` is the object that it replaces."""
    causes = [*_metadata(kind, new)]
    if check := _CHECKS.get(kind.kind):
        causes += check(new)
    if old is not None and (check_change := _CHANGES.get(kind.kind)):
        causes += check_change(new, old)
    if causes:
        raise invalid(kind, new["metadata"].get("name", ""), causes)


def _metadata(kind: Kind, obj: Obj) -> Iterator[Cause]:
    meta = obj["metadata"]
    name = meta.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif kind.kind in ("Namespace", "Service"):
        if not LABEL.fullmatch(name) or len(name) > 63:
            yield invalid_value("metadata.name", name, NOT_A_LABEL)
    elif kind.group != "rbac.authorization.k8s.io" and (not SUBDOMAIN.fullmatch(name) or len(name) > 253):
        yield invalid_value("metadata.name", name, NOT_A_SUBDOMAIN)
    yield from _labels("metadata.labels", meta.get("labels"))


def _labels(field: str, labels: Obj | None) -> Iterator[Cause]:
    for value in (labels or {}).values():
        if not LABEL_VALUE.fullmatch(value):
            yield invalid_value(field, value, NOT_A_LABEL_VALUE)
        elif len(value) > 63:
            yield invalid_value(field, value, "must be no more than 63 bytes")


def _config(obj: Obj) -> Iterator[Cause]:
    for key in (*(obj.get("data") or {}), *(obj.get("binaryData") or {})):
        part = "data" if key in (obj.get("data") or {}) else "binaryData"
        if not KEY.fullmatch(key):
            yield invalid_value(f"{part}[{key}]", key, NOT_A_KEY)
        if key in (".", ".."):
            yield invalid_value(f"{part}[{key}]", key, f"must not be '{key}'")
        elif key.startswith(".."):
            yield invalid_value(f"{part}[{key}]", key, "must not start with '..'")


def _config_change(new: Obj, old: Obj) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    for name in ("data", "binaryData"):
        if new.get(name) != old.get(name):
            yield forbidden_field(name, "field is immutable when `immutable` is set")


def _pod(obj: Obj) -> Iterator[Cause]:
    yield from pod_spec(obj["spec"], "spec", limits_are_requests=True)


def pod_spec(spec: Obj, at: str, limits_are_requests: bool = False) -> Iterator[Cause]:
    volumes: list[str] = []
    for n, volume in enumerate(spec.get("volumes", [])):
        name = volume.get("name", "")
        causes = list(volumepaths.volume(volume, f"{at}.volumes[{n}]"))
        if name in volumes:
            causes.append(duplicate(f"{at}.volumes[{n}].name", name))
        if not causes:
            volumes.append(name)
        yield from causes
    if not spec.get("containers"):
        yield required(f"{at}.containers")
    names: set[str] = set()
    for n, container in enumerate(spec.get("containers", [])):
        yield from _container(container, f"{at}.containers[{n}]", volumes, names)
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        yield not_supported(
            f"{at}.restartPolicy", spec.get("restartPolicy"), ["Always", "OnFailure", "Never"]
        )
    yield from placement.validate(spec, at)


def _container(container: Obj, at: str, volumes: list[str], names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{at}.name")
    elif not LABEL.fullmatch(name):
        yield invalid_value(f"{at}.name", name, NOT_A_LABEL)
    if name in names:
        yield duplicate(f"{at}.name", name)
    names.add(name)
    if not container.get("image"):
        yield required(f"{at}.image")
    yield from _ports_and_env(container, at)
    yield from _mounts(container, at, volumes)
    yield from amounts.of_container(container.get("resources", {}), f"{at}.resources")


def _ports_and_env(container: Obj, at: str) -> Iterator[Cause]:
    for n, port in enumerate(container.get("ports", [])):
        if not 1 <= int(port.get("containerPort", 0)) <= 65535:
            detail = "must be between 1 and 65535, inclusive"
            yield invalid_value(f"{at}.ports[{n}].containerPort", port.get("containerPort"), detail)
    for n, env in enumerate(container.get("env", [])):
        detail = (
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
        if not env.get("name"):
            yield required(f"{at}.env[{n}].name")
        elif "=" in env["name"] or not env["name"].isprintable() or not env["name"].isascii():
            yield invalid_value(f"{at}.env[{n}].name", env["name"], detail)


def _mounts(container: Obj, at: str, volumes: list[str]) -> Iterator[Cause]:
    paths: set[str] = set()
    for n, mount in enumerate(container.get("volumeMounts", [])):
        if mount.get("name") not in volumes:
            yield field_not_found(f"{at}.volumeMounts[{n}].name", mount.get("name"))
        path = mount.get("mountPath", "")
        if path in paths:
            yield invalid_value(f"{at}.volumeMounts[{n}].mountPath", path, "must be unique")
        paths.add(path)
        yield from volumepaths.inside(mount.get("subPath", ""), f"{at}.volumeMounts.subPath")


def _pod_change(new: Obj, old: Obj) -> Iterator[Cause]:
    def fixed(spec: Obj) -> Obj:
        free = (
            "activeDeadlineSeconds",
            "tolerations",
            "terminationGracePeriodSeconds",
            "nodeName",
            "schedulingGates",
        )
        kept = {k: v for k, v in spec.items() if k not in free}
        containers = [{k: v for k, v in c.items() if k != "image"} for c in spec["containers"]]
        return kept | {"containers": containers}

    gates = [gate["name"] for gate in old["spec"].get("schedulingGates") or []]
    for gate in new["spec"].get("schedulingGates") or []:
        if gate["name"] not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden_field("spec.schedulingGates", why)
    if fixed(new["spec"]) != fixed(old["spec"]):
        yield forbidden_field("spec", POD_SPEC_IS_FIXED)


def _workload(obj: Obj) -> Iterator[Cause]:
    spec = obj["spec"]
    template = spec["template"]
    labels = template["metadata"].get("labels") or {}
    if not spec.get("selector"):
        yield required("spec.selector")
    elif not match_labels(spec["selector"], labels):
        detail = "`selector` does not match template `labels`"
        yield invalid_value("spec.template.metadata.labels", labels, detail)
    if template["spec"].get("restartPolicy") != "Always":
        field = "spec.template.spec.restartPolicy"
        yield not_supported(field, template["spec"].get("restartPolicy"), ["Always"])
    yield from _labels("spec.template.labels", labels)
    yield from pod_spec(template["spec"], "spec.template.spec")


def _stateful_change(new: Obj, old: Obj) -> Iterator[Cause]:
    free = (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
    kept = [{k: v for k, v in o["spec"].items() if k not in free} for o in (new, old)]
    if kept[0] != kept[1]:
        yield forbidden_field("spec", STATEFUL_SPEC_IS_FIXED)


def _selector_change(new: Obj, old: Obj) -> Iterator[Cause]:
    if new["spec"].get("selector") != old["spec"].get("selector"):
        yield invalid_value("spec.selector", new["spec"].get("selector"), "field is immutable")


def _job(obj: Obj) -> Iterator[Cause]:
    yield from jobvalidation.check(obj)
    spec = obj["spec"]["template"]["spec"]
    if spec.get("restartPolicy") not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from pod_spec(spec, "spec.template.spec")


def _job_change(new: Obj, old: Obj) -> Iterator[Cause]:
    spec, had = new["spec"], old["spec"]
    together = spec.get("completions") == spec["parallelism"] and spec["completionMode"] == "Indexed"
    if spec.get("completions") != had.get("completions") and not together:
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid_value("spec.completions", spec.get("completions"), detail)
    if spec["template"] != had["template"] and not had["suspend"]:
        yield invalid_value("spec.template", spec["template"], "field is immutable")


def _service(obj: Obj) -> Iterator[Cause]:
    spec = obj["spec"]
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        yield required("spec.ports")
    for n, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            yield required(f"spec.ports[{n}].name")
        if not 1 <= int(port.get("port") or 0) <= 65535:
            yield invalid_value(
                f"spec.ports[{n}].port", port.get("port"), "must be between 1 and 65535, inclusive"
            )
        if "nodePort" in port and not 30000 <= port["nodePort"] <= 32767:
            detail = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            yield invalid_value(f"spec.ports[{n}].nodePort", port["nodePort"], detail)


def _service_change(new: Obj, old: Obj) -> Iterator[Cause]:
    if new["spec"].get("clusterIP") != old["spec"].get("clusterIP"):
        yield invalid_value("spec.clusterIPs[0]", [new["spec"].get("clusterIP")], "may not change once set")


def _claim_change(new: Obj, old: Obj) -> Iterator[Cause]:
    def fixed(obj: Obj, bound: bool) -> Obj:
        free = ("resources", "volumeAttributesClassName") if bound else ()
        return {k: v for k, v in obj["spec"].items() if k not in free}

    bound = old["status"].get("phase") == "Bound"
    binding = not old["spec"].get("volumeName") and new["spec"].get("volumeName")
    if binding:
        return
    if fixed(new, bound) != fixed(old, bound):
        yield forbidden_field("spec", CLAIM_SPEC_IS_FIXED)
        return
    size, before = (milli(o["spec"]["resources"]["requests"]["storage"]) for o in (new, old))
    if size < before and size <= milli(old["status"].get("capacity", {}).get("storage", "0")):
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")


_CHECKS: dict[str, Callable[[Obj], Iterator[Cause]]] = {
    "ConfigMap": _config,
    "Secret": _config,
    "Pod": _pod,
    "StatefulSet": _workload,
    "Deployment": _workload,
    "Job": _job,
    "Service": _service,
    "PersistentVolume": volumerules.volume,
    "PersistentVolumeClaim": volumerules.claim,
    "ResourceQuota": amounts.of_quota,
    "RuntimeClass": runtimeclasses.validate,
    "VolumeSnapshot": volumerules.snapshot,
    "VolumeSnapshotClass": volumerules.snapshot_class,
    "VolumeSnapshotContent": volumerules.snapshot_content,
    "Role": roles.role,
    "ClusterRole": roles.cluster_role,
    "RoleBinding": roles.role_binding,
    "ClusterRoleBinding": roles.cluster_role_binding,
}
_CHANGES: dict[str, Callable[[Obj, Obj], Iterator[Cause]]] = {
    "ConfigMap": _config_change,
    "Secret": _config_change,
    "Pod": _pod_change,
    "StatefulSet": _stateful_change,
    "Deployment": _selector_change,
    "Job": _job_change,
    "Service": _service_change,
    "PersistentVolumeClaim": _claim_change,
    "RoleBinding": roles.binding_change,
    "ClusterRoleBinding": roles.binding_change,
}

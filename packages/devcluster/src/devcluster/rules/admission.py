"""Admission between validation and the store: namespaces, service accounts, LimitRange, Pod Security, quota."""

import random
import string

from devcluster.errors import forbidden, namespace_terminating, not_found
from devcluster.resources import (
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    PVC,
    SERVICE,
    SERVICE_ACCOUNT,
    STORAGE_CLASS,
    Kind,
    Obj,
)
from devcluster.rules import nodeports, podsecurity, runtimeclasses
from devcluster.rules.quota import Totals, check_quota
from devcluster.scheduling import priorities
from devcluster.store import Store
from devcluster.values.quantity import milli

_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def admit_create(store: Store, kind: Kind, obj: Obj) -> None:
    """Complete a new object in place, or refuse it."""
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"].get("name", "")
    if kind.namespaced:
        _namespace_accepts(store, kind, namespace, name)
    if kind is POD:
        _pod_defaults(store, obj)
        _limit_ranges(store, obj)
    if kind is PVC:
        _default_class(store, obj)
    if kind is NODE:
        _new_node(obj)
    if kind is SERVICE:
        nodeports.settle(store, obj, None)


def _new_node(node: Obj) -> None:
    """Taint a new node, so that it takes no pods before it is known to be ready."""
    known = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
    if known.get("Ready") != "True":
        node["spec"].setdefault("taints", []).append(
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        )


def admit_valid(store: Store, totals: Totals, kind: Kind, obj: Obj) -> None:
    """Run the checks that need a complete, valid object."""
    if kind is POD:
        _pod_security(store, obj)
    check_quota(store, totals, kind, obj)


def admit_update(store: Store, kind: Kind, new: Obj, old: Obj) -> None:
    if kind is PVC:
        _growth(store, new, old)
    if kind is SERVICE:
        nodeports.settle(store, new, old)


def _growth(store: Store, new: Obj, old: Obj) -> None:
    asked, had = (o["spec"]["resources"]["requests"]["storage"] for o in (new, old))
    if milli(asked) <= milli(had):
        return
    found = store.get(STORAGE_CLASS, "", new["spec"].get("storageClassName") or "")
    if found is None or not found.get("allowVolumeExpansion"):
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
            " support resize"
        )
        raise forbidden(PVC, new["metadata"]["name"], why)


def _namespace_accepts(store: Store, kind: Kind, namespace: str, name: str) -> None:
    found = store.get(NAMESPACE, "", namespace)
    if found is None:
        raise not_found(NAMESPACE, namespace)
    if "deletionTimestamp" in found["metadata"] and kind.kind != "Event":
        raise namespace_terminating(kind, name, namespace)


def _pod_defaults(store: Store, pod: Obj) -> None:
    namespace, spec = pod["metadata"]["namespace"], pod["spec"]
    account = spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = account
    if (found := store.get(SERVICE_ACCOUNT, namespace, account)) is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(POD, pod["metadata"]["name"], why)
    if spec.get("automountServiceAccountToken", found.get("automountServiceAccountToken", True)):
        _token_volume(spec)
    tolerations = spec.setdefault("tolerations", [])
    for key in _TOLERATED:
        if not any(
            t.get("key") in (key, None) and t.get("effect") in ("NoExecute", None) for t in tolerations
        ):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )
    runtimeclasses.admit(store, pod)
    priorities.admit(store, pod)


def _token_volume(spec: Obj) -> None:
    """Add the token volume, unless a container mounts something at its path."""
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    if any(m["mountPath"] == path for c in spec["containers"] for m in c.get("volumeMounts", [])):
        return
    name = "kube-api-access-" + "".join(random.choices(string.ascii_lowercase + string.digits, k=5))
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    root_ca = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": root_ca},
        {"downwardAPI": {"items": [namespace]}},
    ]
    spec.setdefault("volumes", []).append(
        {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
    )
    for container in spec["containers"]:
        container.setdefault("volumeMounts", []).append({"name": name, "readOnly": True, "mountPath": path})


def _limit_ranges(store: Store, pod: Obj) -> None:
    for limit_range in store.all(LIMIT_RANGE, pod["metadata"]["namespace"]):
        for limits in limit_range.get("spec", {}).get("limits", []):
            if limits.get("type") == "Container":
                _container_limits(pod, limits)


def _container_limits(pod: Obj, limits: Obj) -> None:
    told = []
    for container in pod["spec"]["containers"]:
        resources = container.setdefault("resources", {})
        for part, key, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
            missing = {k: v for k, v in limits.get(key, {}).items() if k not in resources.get(part, {})}
            if missing:
                resources.setdefault(part, {}).update(missing)
                told.append(f"{', '.join(sorted(missing))} {word} for container {container['name']}")
    if told:
        note = "LimitRanger plugin set: " + "; ".join(told)
        pod["metadata"].setdefault("annotations", {})["kubernetes.io/limit-ranger"] = note
    for container in pod["spec"]["containers"]:
        for name, most in limits.get("max", {}).items():
            limit = container["resources"].get("limits", {}).get(name)
            if limit is not None and milli(limit) > milli(most):
                why = f"maximum {name} usage per Container is {most}, but limit is {limit}"
                raise forbidden(POD, pod["metadata"]["name"], why)


def _default_class(store: Store, claim: Obj) -> None:
    if "storageClassName" in claim["spec"]:
        return
    for found in store.all(STORAGE_CLASS):
        if (found["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true":
            claim["spec"]["storageClassName"] = found["metadata"]["name"]


def _pod_security(store: Store, pod: Obj) -> None:
    if why := _security_refusal(store, pod["metadata"]["namespace"], pod["spec"]):
        raise forbidden(POD, pod["metadata"]["name"], why)


def _security_refusal(store: Store, namespace: str, spec: Obj, mode: str = podsecurity.ENFORCE) -> str | None:
    found = store.get(NAMESPACE, "", namespace)
    labels = (found["metadata"].get("labels") or {}) if found else {}
    return podsecurity.refusal(labels.get(mode, ""), labels.get(f"{mode}-version", ""), spec)

"""ResourceQuota: the use of a namespace, and the check of a new object against it."""

from collections import Counter

from devcluster.errors import forbidden
from devcluster.resources import KINDS, NAMESPACE, POD, PVC, RESOURCE_QUOTA, SERVICE, Kind, Obj
from devcluster.rules.nodeports import has_node_ports
from devcluster.store import Change, Store
from devcluster.values.quantity import milli, show

Usage = dict[str, int]
"""Thousandths by quota key."""


def _pod(pod: Obj) -> Usage:
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    usage: Usage = {"pods": 1000, "count/pods": 1000}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        for part in ("requests", "limits"):
            for name, value in resources.get(part, {}).items():
                if part == "limits" and "/" in name:
                    continue  # extended resources are counted by their requests only
                usage[f"{part}.{name}"] = usage.get(f"{part}.{name}", 0) + milli(value)
                if part == "requests" and "/" not in name:
                    usage[name] = usage.get(name, 0) + milli(value)
    return usage


def _claim(claim: Obj) -> Usage:
    storage = milli(claim["spec"]["resources"]["requests"]["storage"])
    usage = {"persistentvolumeclaims": 1000, "requests.storage": storage}
    if name := claim["spec"].get("storageClassName"):
        prefix = f"{name}.storageclass.storage.k8s.io"
        usage |= {f"{prefix}/persistentvolumeclaims": 1000, f"{prefix}/requests.storage": storage}
    return usage


def _service(service: Obj) -> Usage:
    kind = service["spec"].get("type")
    usage: Usage = {"services": 1000}
    if kind == "LoadBalancer":
        usage["services.loadbalancers"] = 1000
    if has_node_ports(service["spec"]):
        usage["services.nodeports"] = 1000 * len(service["spec"].get("ports") or [])
    return usage


_USAGE = {POD: _pod, PVC: _claim, SERVICE: _service}
_COUNTED = {
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "replicationcontrollers": "",
    "resourcequotas": "",
}


def usage_of(kind: Kind, obj: Obj) -> Usage:
    if measure := _USAGE.get(kind):
        return measure(obj)
    key = f"count/{kind.qualified}"
    return {key: 1000, kind.plural: 1000} if kind.plural in _COUNTED else {key: 1000}


class Totals:
    """Use of namespaces: counted on the first query, then updated with every change."""

    def __init__(self, store: Store):
        self._store = store
        self._of: dict[str, Counter[str]] = {}
        store.listen(self._heard)

    def of(self, namespace: str) -> Counter[str]:
        if namespace not in self._of:
            total = self._of[namespace] = Counter()
            for kind in KINDS:
                for obj in self._store.each(kind, namespace) if kind.namespaced else ():
                    total.update(usage_of(kind, obj))
        return self._of[namespace]

    def _heard(self, change: Change) -> None:
        if change.kind is NAMESPACE and change.type == "DELETED":
            self._of.pop(change.obj["metadata"]["name"], None)
        total = self._of.get(change.obj["metadata"].get("namespace", ""))
        if total is None:
            return
        if change.old is not None:
            total.subtract(usage_of(change.kind, change.old))
        if change.type != "DELETED":
            total.update(usage_of(change.kind, change.obj))


def used(totals: Totals, quota: Obj) -> dict[str, str]:
    """Return the `used` member of a quota's status, for the limited keys that Kubernetes counts."""
    hard = {key: most for key, most in quota["spec"].get("hard", {}).items() if _is_counted(key)}
    total = totals.of(quota["metadata"]["namespace"])
    return {key: show(total[key], hard[key] if total[key] else "") for key in hard}


def _is_counted(key: str) -> bool:
    """Return True if the key is counted: of extended resources only `requests.`; other controllers count the rest."""
    return "/" not in key or key.startswith(("requests.", "count/")) or ".storageclass.storage.k8s.io/" in key


def check_quota(store: Store, totals: Totals, kind: Kind, obj: Obj) -> None:
    """Raise ApiError if the object would exceed a quota of the namespace."""
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"].get("name", "")
    if not namespace:
        return
    for quota in store.all(RESOURCE_QUOTA, namespace):
        hard = quota["spec"].get("hard", {})
        asked = {k: v for k, v in usage_of(kind, obj).items() if k in hard}
        if kind is POD:
            _require_figures(quota, obj)
        if not asked:
            continue
        held = totals.of(namespace)
        over = sorted(k for k, v in asked.items() if v and held[k] + v > milli(hard[k]))
        if over:
            parts = (
                ",".join(f"{k}={show(asked[k], hard[k])}" for k in over),
                ",".join(f"{k}={show(held[k], hard[k])}" for k in over),
                ",".join(f"{k}={hard[k]}" for k in over),
            )
            told = "exceeded quota: {}, requested: {}, used: {}, limited: {}"
            raise forbidden(kind, name, told.format(quota["metadata"]["name"], *parts))


def _require_figures(quota: Obj, pod: Obj) -> None:
    """Refuse a pod with a container that lacks a figure for cpu or memory which the quota limits."""
    missing: dict[str, list[str]] = {}
    for key in sorted(quota["spec"].get("hard", {})):
        part, _, name = (
            key.rpartition(".") if key.startswith(("requests.", "limits.")) else ("requests", "", key)
        )
        if name not in ("cpu", "memory"):
            continue
        for container in pod["spec"]["containers"]:
            if name not in container.get("resources", {}).get(part, {}):
                missing.setdefault(key, []).append(container["name"])
    if missing:
        told = "; ".join(f"{key} for: {','.join(names)}" for key, names in missing.items())
        why = f"failed quota: {quota['metadata']['name']}: must specify {told}"
        raise forbidden(POD, pod["metadata"]["name"], why)

"""ResourceQuota: what a namespace uses, and whether one object more still fits."""

from devcluster.errors import forbidden
from devcluster.quantity import milli, show
from devcluster.resources import POD, PVC, RESOURCE_QUOTA, SERVICE, Kind, Obj
from devcluster.store import Store

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
                    continue  # extended resources are counted by their requests alone
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
    if kind == "NodePort" or (
        kind == "LoadBalancer" and service["spec"].get("allocateLoadBalancerNodePorts", True)
    ):
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


def used(store: Store, quota: Obj) -> dict[str, str]:
    """The `used` of a quota's status, for the keys that it limits."""
    hard = quota["spec"].get("hard", {})
    total = _total(store, quota["metadata"]["namespace"], set(hard))
    return {key: show(total.get(key, 0), hard[key] if total.get(key) else "") for key in hard}


def _total(store: Store, namespace: str, keys: set[str]) -> Usage:
    total: Usage = {}
    for kind in store_kinds(keys):
        for obj in store.each(kind, namespace):
            for key, amount in usage_of(kind, obj).items():
                if key in keys:
                    total[key] = total.get(key, 0) + amount
    return total


def store_kinds(keys: set[str]) -> list[Kind]:
    """The kinds that count towards any of the keys."""
    from devcluster.resources import KINDS

    found = []
    for kind in KINDS:
        countable = {f"count/{kind.qualified}", kind.plural}
        if kind is POD:
            countable |= {k for k in keys if k.startswith(("requests.", "limits.")) or k in ("cpu", "memory")}
        if kind is PVC:
            countable |= {k for k in keys if "storage" in k}
        if kind is SERVICE:
            countable |= {k for k in keys if k.startswith("services")}
        if keys & countable:
            found.append(kind)
    return found


def check_quota(store: Store, kind: Kind, obj: Obj) -> None:
    """Refuse what would go over a quota of the namespace."""
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
        held = _total(store, namespace, set(asked))
        over = sorted(k for k, v in asked.items() if v and held.get(k, 0) + v > milli(hard[k]))
        if over:
            parts = (
                ",".join(f"{k}={show(asked[k], hard[k])}" for k in over),
                ",".join(f"{k}={show(held.get(k, 0), hard[k])}" for k in over),
                ",".join(f"{k}={hard[k]}" for k in over),
            )
            told = "exceeded quota: {}, requested: {}, used: {}, limited: {}"
            raise forbidden(kind, name, told.format(quota["metadata"]["name"], *parts))


def _require_figures(quota: Obj, pod: Obj) -> None:
    """A quota on cpu or memory makes the figure compulsory in every container."""
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

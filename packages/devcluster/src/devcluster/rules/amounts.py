"""Resources that containers and quotas may name, and their amounts: refused in the API server's words."""

from collections.abc import Iterator

from devcluster.errors import Cause, invalid_value, required
from devcluster.resources import Obj
from devcluster.values.names import KEY_NAME, NOT_A_KEY_NAME
from devcluster.values.quantity import milli

_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS = (
    *(f"{part}{name}" for part in ("", "requests.", "limits.") for name in _OF_CONTAINERS),
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage"),
)
_UNQUALIFIED = "must be a standard resource type or fully qualified"
_NOT_EXTENDED = "doesn't follow extended resource name standard"


def of_container(resources: Obj, at: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for part, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            yield from _amount(name, value, f"{at}.{part}[{name}]")
    for name, value in requests.items():
        if "/" in name and name not in limits:
            yield required(f"{at}.limits", "Limit must be set for non overcommitable resources")
        elif name in limits and milli(value) > milli(limits[name]):
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{at}.requests", value, detail)
        elif "/" in name and milli(value) != milli(limits[name]):
            yield invalid_value(f"{at}.requests", value, f"must be equal to {name} limit of {limits[name]}")


def _amount(name: str, value: str, at: str) -> Iterator[Cause]:
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
            yield invalid_value(at, name, _UNQUALIFIED)
            yield invalid_value(at, name, "must be a standard resource for containers")
    else:
        good = KEY_NAME.fullmatch(name.rpartition("/")[2])
        if not good:
            yield invalid_value(at, name, NOT_A_KEY_NAME)
        if not good or name.startswith("requests."):
            yield invalid_value(at, name, _NOT_EXTENDED)
    if milli(value) < 0:
        yield invalid_value(at, value, "must be greater than or equal to 0")
    elif "/" in name and milli(value) % 1000:
        yield invalid_value(at, value, "must be an integer")


def of_quota(quota: Obj) -> Iterator[Cause]:
    for name in quota.get("spec", {}).get("hard") or {}:
        if "/" not in name and name not in _OF_QUOTAS and "hugepages-" not in name:
            yield invalid_value(f"spec.hard[{name}]", name, _UNQUALIFIED)
            yield invalid_value(f"spec.hard[{name}]", name, "must be a standard resource for quota")

"""Ports of the nodes: each belongs to one Service of the cluster while its type has node ports."""

import random

from devcluster.errors import ApiError, invalid, invalid_value
from devcluster.resources import SERVICE, Obj
from devcluster.store import Store

RANGE = range(30000, 32768)


def settle(store: Store, new: Obj, old: Obj | None) -> None:
    """Keep the Service's node ports, assign missing ones, release those that its type no longer has."""
    had = {
        _key(port): port["nodePort"]
        for port in (old or {"spec": {}})["spec"].get("ports") or []
        if "nodePort" in port
    }
    ports = new["spec"].get("ports") or []
    if not has_node_ports(new["spec"]):
        for port in ports:
            if port.get("nodePort") == had.get(_key(port)):
                port.pop("nodePort", None)
        return
    taken = _taken(store, new)
    for number, port in enumerate(ports):
        if "nodePort" not in port:
            port["nodePort"] = had.get(_key(port)) or _free(taken)
        elif port["nodePort"] in taken:
            cause = invalid_value(
                f"spec.ports[{number}].nodePort", port["nodePort"], "provided port is already allocated"
            )
            raise invalid(SERVICE, new["metadata"]["name"], [cause])
        taken.add(port["nodePort"])


def has_node_ports(spec: Obj) -> bool:
    balanced = spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)
    return bool(spec.get("type") == "NodePort" or balanced)


def _key(port: Obj) -> tuple[int, str]:
    return port["port"], port.get("protocol", "TCP")


def _taken(store: Store, but: Obj) -> set[int]:
    uid = but["metadata"].get("uid")
    others = (service for service in store.each(SERVICE) if service["metadata"].get("uid") != uid)
    return {
        port["nodePort"]
        for service in others
        for port in service["spec"].get("ports") or []
        if "nodePort" in port
    }


def _free(taken: set[int]) -> int:
    free = [port for port in RANGE if port not in taken]
    if not free:
        why = "Internal error occurred: failed to allocate a nodePort: range is full"
        raise ApiError(500, "InternalError", why)
    return random.choice(free)

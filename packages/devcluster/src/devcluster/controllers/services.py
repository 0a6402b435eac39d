"""Services that can be reached from outside, by a TCP proxy to the pods behind them.

A Service of type LoadBalancer has its own address of 127.64.0.0/10, one of type NodePort has ports at 127.0.0.1,
which is the address of every node here.
"""

import asyncio
import socket
from collections.abc import Iterable

from devcluster.api import Api
from devcluster.controllers.base import Controller
from devcluster.controllers.proxy import Proxy
from devcluster.events import Recorder
from devcluster.faults.registry import End, Fault, Switch, number
from devcluster.network import Addresses, Connect
from devcluster.resources import POD, SERVICE, Obj
from devcluster.store import Change

Key = tuple[str, str]
Door = tuple[str, int]
"""An address and a port."""
NODE_ADDRESS = "127.0.0.1"
RETRY_SECONDS = 10.0
SHORT_RETRY_SECONDS = 1.0
"""While a fault leaves no address."""


class ServiceController(Controller[Key]):
    def __init__(self, api: Api, addresses: Addresses, connect: Connect | None):
        super().__init__(api)
        self._addresses, self._connect = addresses, connect
        self._events = Recorder(api, "metallb-controller")
        self._limits: list[Fault] = []
        self.switch = Switch(("addresses",), frozenset(), self._begin)
        self._proxies: dict[Key, dict[Door, Proxy]] = {}

    def keys(self, change: Change) -> Iterable[Key]:
        if change.kind is SERVICE:
            yield change.obj["metadata"]["namespace"], change.obj["metadata"]["name"]

    async def reconcile(self, key: Key) -> float | None:
        service = self.api.store.get(SERVICE, *key)
        if service is None or "deletionTimestamp" in service["metadata"]:
            await self._stop(key)
        elif service["spec"]["type"] == "LoadBalancer":
            return await self._balance(key, service)
        elif service["spec"]["type"] == "NodePort":
            return await self._open_node_ports(key, service)
        else:
            await self._stop(key)
        return None

    def _begin(self, fault: Fault) -> End:
        number(fault.spec, "addresses")
        self._limits.append(fault)
        return lambda: self._limits.remove(fault)

    @property
    def pool_size(self) -> int:
        """Number of addresses; a fault may limit it."""
        return min([self._addresses.size, *(int(fault.spec["addresses"]) for fault in self._limits)])

    @property
    def assigned(self) -> int:
        return len({address_of(service) for service in self.api.store.each(SERVICE)} - {""})

    async def _balance(self, key: Key, service: Obj) -> float | None:
        held = address_of(service)
        if not held and self.assigned >= self.pool_size:
            message = f'Failed to allocate IP for "{key[0]}/{key[1]}": no available IPs'
            self._events.event(SERVICE, service, "Warning", "AllocationFailed", message)
            return SHORT_RETRY_SECONDS
        address = held or self._addresses.take({address_of(s) for s in self.api.store.each(SERVICE)})
        try:
            await self._serve(key, {(address, port["port"]): port["port"] for port in tcp_ports(service)})
        except OSError as error:
            await self._stop(key)
            message = f"Error syncing load balancer: cannot listen on {address}: {error.strerror or error}"
            self._events.event(SERVICE, service, "Warning", "SyncLoadBalancerFailed", message)
            self._set_address(service, None)
            return RETRY_SECONDS
        if not held:
            self._set_address(service, address)
            self._events.event(SERVICE, service, "Normal", "IPAllocated", f'Assigned IP ["{address}"]')
        return None

    async def _open_node_ports(self, key: Key, service: Obj) -> float | None:
        """Open the node ports. A real kube-proxy takes a port in any case; here another process may already have it."""
        doors = {(NODE_ADDRESS, p["nodePort"]): p["port"] for p in tcp_ports(service) if "nodePort" in p}
        try:
            await self._serve(key, doors)
        except OSError as error:
            await self._stop(key)
            message = f"cannot listen on a port of the node: {error.strerror or error}"
            self._events.event(SERVICE, service, "Warning", "PortNotAvailable", message)
            return RETRY_SECONDS
        return None

    def _set_address(self, service: Obj, address: str | None) -> None:
        balancer: Obj = {"ingress": [{"ip": address, "ipMode": "VIP"}]} if address else {}
        self.api.set_status(SERVICE, service, (service.get("status") or {}) | {"loadBalancer": balancer})

    async def _serve(self, key: Key, doors: dict[Door, int]) -> None:
        """Keep one proxy per door (address and port), which leads to a port of the Service."""
        if self._connect is None:
            return  # simulated pods accept no connections
        open_ones = self._proxies.setdefault(key, {})
        for door in set(open_ones) - set(doors):
            await open_ones.pop(door).close()
        for door, port in doors.items():
            if door not in open_ones:
                proxy = Proxy(lambda port=port: self._endpoint(key, port), self._connect)  # type: ignore[misc]
                await proxy.listen(socket.create_server(door))
                open_ones[door] = proxy

    def _endpoint(self, key: Key, port: int) -> tuple[str, int] | None:
        """Return the pod and port for a new connection: a ready pod, or any running one if the Service allows that."""
        service = self.api.store.get(SERVICE, *key)
        if service is None:
            return None
        entry = next((p for p in service["spec"]["ports"] if p["port"] == port), None)
        if entry is None:
            return None
        for pod in endpoints(service, self.api.store.each(POD, key[0])):
            if number := target_port(entry, pod):
                return pod["status"]["podIP"], number
        return None

    async def _stop(self, key: Key) -> None:
        for proxy in self._proxies.pop(key, {}).values():
            await proxy.close()

    async def close(self) -> None:
        await asyncio.gather(*(self._stop(key) for key in list(self._proxies)))


def tcp_ports(service: Obj) -> list[Obj]:
    return [port for port in service["spec"].get("ports", []) if port["protocol"] == "TCP"]


def address_of(service: Obj) -> str:
    ingress = (service.get("status") or {}).get("loadBalancer", {}).get("ingress") or [{}]
    return str(ingress[0].get("ip", ""))


def endpoints(service: Obj, pods: list[Obj]) -> list[Obj]:
    selector = service["spec"].get("selector")
    if not selector:
        return []
    all_of_them = service["spec"].get("publishNotReadyAddresses", False)
    found = []
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if any(labels.get(k) != v for k, v in selector.items()) or not pod.get("status", {}).get("podIP"):
            continue
        if pod["status"].get("phase") in ("Failed", "Succeeded"):
            continue
        if all_of_them or _ready(pod):
            found.append(pod)
    return sorted(found, key=lambda p: "deletionTimestamp" in p["metadata"])


def _ready(pod: Obj) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def target_port(entry: Obj, pod: Obj) -> int | None:
    target: int | str = entry.get("targetPort") or entry["port"]
    if isinstance(target, int) or str(target).isdigit():
        return int(target)
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", []):
            if port.get("name") == target:
                return int(port["containerPort"])
    return None

"""Pool of MetalLB's addresses for load balancers, and how many are taken: read only, stored nowhere."""

import ipaddress
from typing import Protocol

from aiohttp import web

from devcluster.errors import method_not_allowed, no_such_resource
from devcluster.resources import Obj, group_entry
from devcluster.serving.requests import Query
from devcluster.serving.responses import as_json

GROUP, VERSION = "metallb.io", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP}"
NAMESPACE, NAME = "metallb-system", "devcluster"
FIRST = ipaddress.IPv4Address("127.64.0.1")
_ENTRY = group_entry(GROUP, VERSION)
_RESOURCE: Obj = {"name": "ipaddresspools", "singularName": "ipaddresspool", "namespaced": True}
_RESOURCE |= {"kind": "IPAddressPool", "verbs": ["get", "list"]}
_ALL = {f"{ROOT}/{VERSION}/ipaddresspools", f"{ROOT}/{VERSION}/namespaces/{NAMESPACE}/ipaddresspools"}


class Addresses(Protocol):
    @property
    def pool_size(self) -> int: ...

    @property
    def assigned(self) -> int: ...


class MetalLB:
    groups = (_ENTRY,)

    def __init__(self, addresses: Addresses):
        self._addresses = addresses

    def serves(self, path: str) -> bool:
        return path == ROOT or path.startswith(f"{ROOT}/")

    def answer(self, request: web.Request, query: Query) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD") or query.flag("watch"):
            raise method_not_allowed()
        path, about = request.path.rstrip("/"), {"apiVersion": API_VERSION}
        if path == ROOT:
            return as_json({"kind": "APIGroup", "apiVersion": "v1", **_ENTRY})
        if path == f"{ROOT}/{VERSION}":
            body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION}
            return as_json(body | {"resources": [_RESOURCE]})
        if path in _ALL:
            return as_json(about | {"kind": "IPAddressPoolList", "metadata": {}, "items": [self._pool()]})
        if path == f"{ROOT}/{VERSION}/namespaces/{NAMESPACE}/ipaddresspools/{NAME}":
            return as_json(about | {"kind": "IPAddressPool", **self._pool()})
        raise no_such_resource()

    def _pool(self) -> Obj:
        """Return the pool. Its range has the pool's size, but not the addresses that Services really get."""
        size, taken = self._addresses.pool_size, self._addresses.assigned
        ranges = [f"{FIRST}-{FIRST + size - 1}"] if size else []
        free = max(size - taken, 0)
        return {
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "spec": {"addresses": ranges, "autoAssign": True, "avoidBuggyIPs": True},
            "status": {"assignedIPv4": taken, "assignedIPv6": 0, "availableIPv4": free, "availableIPv6": 0},
        }

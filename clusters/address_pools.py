"""Total and free addresses of MetalLB's pools: by MetalLB's own count, or by what Services hold of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from clusters.api import Api
from clusters.kinds import METALLB
from clusters.transport import Json, Objects

FEW_PERCENT = 10

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class AddressPool:
    name: str
    total: int
    free: int

    @property
    def is_nearly_used_up(self) -> bool:
        return self.free * 100 < FEW_PERCENT * self.total


def pools(api: Api) -> list[AddressPool]:
    """Return MetalLB's pools; empty if the cluster serves no MetalLB resources. Unreadable ranges count as none."""
    if METALLB not in api.groups():
        return []
    found = api.list("IPAddressPool")
    is_counted = all("availableIPv4" in (body.get("status") or {}) for body in found)
    held = [] if is_counted else list(_held(api.list("Service")))
    return [_pool(body, held) for body in found]


def _held(services: Objects) -> Iterable[Address]:
    for service in services:
        for one in service.get("status", {}).get("loadBalancer", {}).get("ingress") or []:
            if one.get("ip"):
                yield ip_address(one["ip"])


def _pool(body: Json, held: Iterable[Address]) -> AddressPool:
    ranges = [span(text) for text in body.get("spec", {}).get("addresses") or []]
    total = sum(int(last) - int(first) + 1 for first, last in filter(None, ranges))
    status = body.get("status") or {}
    if "availableIPv4" in status:
        free = int(status.get("availableIPv4") or 0) + int(status.get("availableIPv6") or 0)
    else:
        free = total - len({one for one in held if any(_has(each, one) for each in ranges)})
    return AddressPool(body["metadata"]["name"], max(total, free), max(0, free))


def _has(ends: tuple[Address, Address] | None, address: Address) -> bool:
    return (
        ends is not None
        and ends[0].version == address.version
        and int(ends[0]) <= int(address) <= int(ends[1])
    )


def span(text: str) -> tuple[Address, Address] | None:
    """Return the first and last address of a range (10.0.0.1-10.0.0.9) or network; None if it is neither."""
    first, dash, last = text.replace(" ", "").partition("-")
    try:
        if dash:
            return ip_address(first), ip_address(last)
        network = ip_network(first, strict=False)
        return network[0], network[-1]
    except ValueError:
        return None

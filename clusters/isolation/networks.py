"""Networks that keep tenants apart: what a cluster's objects say of them, and what is still missing. Pure.

An admin's entries and what was found are used together: every one of these networks is denied to workspaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from clusters.models import Cluster

Network = IPv4Network | IPv6Network
# Addresses of nodes by which others reach them: kubernetes.io/docs/reference/node/node-status/#addresses
NODE_ADDRESSES = ("InternalIP", "ExternalIP")
# Words of an API server that refuses a Service's address. Since 1.33 it has ServiceCIDR objects, too.
RANGE = re.compile(r"range of valid IPs is ([0-9A-Fa-f.:/]+)")


@dataclass(frozen=True)
class Known:
    """Networks of a cluster, as CIDRs in order."""

    pods: list[str]
    services: list[str]
    api: list[str]
    nodes: list[str]


def known(cluster: Cluster) -> Known:
    """Return an admin's entries together with what was found.

    A node's address that an admin allows by itself, such as that of an ingress, is left out.
    """
    found: Mapping[str, list[str]] = cluster.found_networks
    return Known(
        pods=_together(cluster.pod_cidrs, found.get("pods", [])),
        services=_together(cluster.service_cidrs, found.get("services", [])),
        api=_together(cluster.api_cidrs, found.get("api", []), found.get("entrances", [])),
        nodes=sorted(set(found.get("nodes", [])) - set(cluster.allowed_cidrs)),
    )


def missing(cluster: Cluster) -> list[str]:
    """Return the fields that an admin has to fill in before tenants count as isolated from each other.

    Pod networks are known only if all pods are inside them: a network plugin may have its own, beside the nodes'.
    """
    found = cluster.found_networks
    networks = known(cluster)
    gaps = [] if networks.pods and not strays(cluster) else ["pod_cidrs"]
    gaps += [] if networks.services else ["service_cidrs"]
    # The entrances alone are no evidence: behind them are the API servers' own addresses.
    return gaps + ([] if cluster.api_cidrs or found.get("api") else ["api_cidrs"])


def strays(cluster: Cluster) -> list[str]:
    """Return addresses of pods outside every known pod network."""
    pods = list(_parsed(known(cluster).pods))
    addresses = cluster.found_networks.get("pod_addresses", [])
    return [
        str(one.network_address) for one in _parsed(addresses) if not any(_inside(one, net) for net in pods)
    ]


# --- From objects of the cluster. They may hold anything: what is no network is left out.


def of_nodes(nodes: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the nodes' pod networks and own addresses."""
    pods: list[Any] = []
    addresses: list[Any] = []
    for node in nodes:
        spec = _dict(node.get("spec"))
        pods += [*_list(spec.get("podCIDRs")), spec.get("podCIDR")]
        addresses += [
            address.get("address")
            for address in map(_dict, _list(_dict(node.get("status")).get("addresses")))
            if address.get("type") in NODE_ADDRESSES
        ]
    return {"pods": cidrs(pods), "nodes": cidrs(addresses)}


def of_pods(pods: Iterable[Mapping[str, Any]], networks: Iterable[str]) -> list[str]:
    """Return addresses of running pods outside these networks. Pods on their node's network have the node's address."""
    nets = list(_parsed(networks))
    addresses: list[Any] = []
    for pod in pods:
        status = _dict(pod.get("status"))
        if status.get("phase") == "Running" and not _dict(pod.get("spec")).get("hostNetwork"):
            several = [_dict(one).get("ip") for one in _list(status.get("podIPs"))]
            addresses += several or [status.get("podIP")]
    return [cidr for cidr in cidrs(addresses) if not any(_inside(ip_network(cidr), net) for net in nets)]


def of_slices(slices: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the addresses in EndpointSlices."""
    endpoints = [_dict(one) for body in slices for one in _list(body.get("endpoints"))]
    return cidrs(address for endpoint in endpoints for address in _list(endpoint.get("addresses")))


def of_service_cidrs(bodies: Iterable[Mapping[str, Any]]) -> list[str]:
    return cidrs(cidr for body in bodies for cidr in _list(_dict(body.get("spec")).get("cidrs")))


def of_service(body: Mapping[str, Any] | None) -> list[str]:
    """Return the Service's own addresses."""
    spec = _dict((body or {}).get("spec"))
    return cidrs([spec.get("clusterIP"), *_list(spec.get("clusterIPs"))])


def of_refusal(message: str) -> list[str]:
    """Return the range that an API server names when it refuses a Service's address."""
    return cidrs(RANGE.findall(message))


def cidrs(texts: Iterable[Any]) -> list[str]:
    """Return networks and addresses as CIDRs, in order and each once.

    Everything ("0.0.0.0/0") is no network of a cluster, and a loopback address is another one on every machine.
    """
    networks = {one for one in _parsed(texts) if one.prefixlen and not one.is_loopback}
    return [str(one) for one in sorted(networks, key=lambda one: (one.version, one))]


def _parsed(texts: Iterable[Any]) -> Iterator[Network]:
    for text in texts:
        if isinstance(text, str) and "%" not in text:  # a zone is of one machine
            try:
                yield ip_network(text, strict=False)
            except ValueError:
                continue


def _inside(inner: Network, outer: Network) -> bool:
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _together(*parts: Iterable[str]) -> list[str]:
    return sorted({cidr for part in parts for cidr in part})


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

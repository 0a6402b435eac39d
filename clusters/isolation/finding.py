"""Search for a cluster's networks: asked of the cluster, kept in its row, announced when they changed."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from clusters import signals
from clusters.api import PAGE, Api, list_if_served
from clusters.errors import ClusterRefused
from clusters.isolation import networks
from clusters.models import Cluster
from clusters.transport import Objects

API_SERVER = ("default", "kubernetes")  # namespace and name of the API server's own Service
OF_API_SERVER = {"kubernetes.io/service-name": "kubernetes"}
# Addresses for documentation (RFC 5737, RFC 3849), in no cluster's range: a Service that asks for one is refused.
IN_NO_RANGE = ("192.0.2.1", "2001:db8::1")

Found = dict[str, list[str]]


def refresh(cluster: Cluster, api: Api) -> bool:
    """Ask the cluster for its networks and keep them in its row. Return True if they changed. Raises ClusterError.

    What the cluster does not tell, or forbids, stays as it was found before. A change is announced in the same
    transaction: if a receiver fails, the next search announces it again.
    """
    seen = look(api)
    with transaction.atomic():
        rows = Cluster.objects.filter(pk=cluster.pk)
        before: Found = rows.values_list("found_networks", flat=True).first() or {}
        found, now = {**before, **seen}, timezone.now()
        rows.update(found_networks=found, networks_found_at=now)
        if changed := _denied(found) != _denied(before):
            signals.networks_changed.send(sender=Cluster, cluster=cluster)
    cluster.found_networks, cluster.networks_found_at = found, now
    return changed


def _denied(found: Found) -> Found:
    """Return the part that policies are made from: pods come and go."""
    return {name: cidrs for name, cidrs in found.items() if name != "pod_addresses"}


def look(api: Api) -> Found:
    """Return what the cluster tells: pods, services, api, entrances, nodes, pod_addresses. Raises ClusterError.

    A part that is forbidden, or that nothing was learned about, is left out.
    """
    found: Found = {}
    if (nodes := _permitted(lambda: api.list("Node"))) is not None:
        found |= networks.of_nodes(nodes)
        # A page is enough: one pod outside the nodes' networks tells that there are others.
        pods = _permitted(lambda: list(islice(api.each("Pod"), PAGE)))
        found |= {} if pods is None else {"pod_addresses": networks.of_pods(pods, found["pods"])}
    learned = {"services": _services(api), "api": _api_servers(api), "entrances": _entrances(api)}
    return found | {name: cidrs for name, cidrs in learned.items() if cidrs}


def _services(api: Api) -> list[str]:
    objects = _permitted(lambda: list_if_served(api, "ServiceCIDR")) or []
    return networks.of_service_cidrs(objects) or networks.cidrs(
        cidr for address in IN_NO_RANGE for cidr in _range_without(api, address)
    )


def _range_without(api: Api, address: str) -> list[str]:
    """Return the range that the cluster names when a Service asks for an address outside. Creates nothing."""
    namespace, _name = API_SERVER
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "berth-asks-for-the-range", "namespace": namespace},
        "spec": {"clusterIP": address, "ports": [{"port": 443}]},
    }
    try:
        api.try_create(service)
    except ClusterRefused as refused:
        return networks.of_refusal(refused.message)
    return []


def _api_servers(api: Api) -> list[str]:
    namespace, _name = API_SERVER

    def slices() -> Objects:
        return api.list("EndpointSlice", namespace=namespace, labels=OF_API_SERVER)

    return networks.of_slices(_permitted(slices) or [])


def _entrances(api: Api) -> list[str]:
    """Return the address of the API server's Service, and those behind the name in the connection."""
    service = _permitted(lambda: api.get("Service", *API_SERVER))
    return networks.cidrs(
        [*networks.of_service(service), *_addresses_of(urlsplit(api.address).hostname or "")]
    )


def _addresses_of(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []


def _permitted(ask: Callable[[], Any]) -> Any:
    """Return the answer; None if the cluster forbids the question or does not know the kind."""
    try:
        return ask()
    except ClusterRefused as refused:
        if refused.status in (403, 404):
            return None
        raise

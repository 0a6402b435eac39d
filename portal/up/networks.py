"""Networks of the trial, for the cluster's settings: its own, and the private addresses that its pods need."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from quotas.namespaces.manifests import PRIVATE

# As devcluster has them (kubelet/network/podnetwork.py): the pods' network, its name server, and its API on loopback.
TRIAL = {
    "pod_cidrs": ["10.244.0.0/16"],
    "service_cidrs": ["10.244.0.3/32"],
    "api_cidrs": ["127.0.0.1/32"],
}
NEEDED = re.compile(r"(?:https?|all)_proxy|pip_(?:extra_)?index_url", re.IGNORECASE)
PIP = Path("/etc/pip.conf")
Resolve = Callable[[str], Iterable[str]]


def addresses_of(host: str) -> set[str]:
    """Return the host's IPv4 addresses, the pods' only family; none if it has no address now."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None, socket.AF_INET)}
    except OSError:
        return set()


def needed(environ: Mapping[str, str], pip: str = "", resolve: Resolve = addresses_of) -> list[str]:
    """Return networks of the proxies and package indexes that pods are told to use, if those are private.

    Those on this machine's loopback are not among them: pods reach them at the gateway, which no policy closes.
    """
    told = [value for name, value in environ.items() if NEEDED.fullmatch(name)]
    hosts = {_host(address) for address in [*told, *re.findall(r"https?://\S+", pip)]} - {""}
    found = {address for host in hosts for address in resolve(host)}
    private = [ip_network(cidr) for cidr in PRIVATE]
    return sorted(f"{one}/32" for one in found if any(ip_address(one) in cidr for cidr in private))


def _host(address: str) -> str:
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


def pip_settings() -> str:
    try:
        return PIP.read_text()
    except OSError:
        return ""

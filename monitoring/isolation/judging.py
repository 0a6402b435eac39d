"""Targets of a proof, and the meaning of its two results. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from monitoring.models import IsolationProof
from quotas.namespaces.manifests import METADATA

from .manifests import PORTS

Outcome = IsolationProof.Outcome
Reached = Mapping[str, bool]
# Names of what is tried begin with one of these words, then a colon.
TENANT, API, METADATA_SERVICE, NODE = "tenant", "api", "metadata", "node"
FORBIDDEN = (TENANT, API, METADATA_SERVICE)
KUBELET, SSH = 10250, 22
MOST_NODES = 3
API_PORTS = (443, 6443)
MOST_API = 2


@dataclass(frozen=True)
class Round:
    """Attempt at everything: what was reached, and if a name server answered."""

    number: int
    reached: Reached
    dns: bool


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    code: str
    data: dict[str, Any] = field(default_factory=dict)


def targets(other: str, nodes: Iterable[Mapping[str, Any]], api_cidrs: Sequence[str]) -> dict[str, list[Any]]:
    """Return what the second pod tries, by name: a host and a port each. `other`: the first pod's address."""
    found: dict[str, list[Any]] = {f"{TENANT}:{port}": [other, port] for port in PORTS}
    hosts = [str(net[0]) for net in map(ip_network, api_cidrs) if net.num_addresses == 1]
    for host in [host for host in hosts if not ip_address(host).is_loopback][:MOST_API]:
        found |= {f"{API}:{host}:{port}": [host, port] for port in API_PORTS}
    for host in sorted(set(filter(None, map(internal, nodes))))[:MOST_NODES]:
        found |= {f"{NODE}:{host}:{port}": [host, port] for port in (KUBELET, SSH)}
    for cidr in (cidr for cidr in METADATA if ":" not in cidr):
        host = cidr.partition("/")[0]
        found[f"{METADATA_SERVICE}:{host}"] = [host, 80]
    return found


def internal(node: Mapping[str, Any]) -> str:
    """Return a node's address; empty for loopback, which is the pod itself to a pod."""
    for entry in node.get("status", {}).get("addresses") or []:
        if entry["type"] == "InternalIP" and not ip_address(entry["address"]).is_loopback:
            return str(entry["address"])
    return ""


def rounds(lines: Iterable[str]) -> list[Round]:
    """Return the rounds in a log; other lines, such as an image's own, do not count."""
    found = []
    for line in lines:
        try:
            told = json.loads(line)
            reached = {str(name): bool(came) for name, came in told["reached"].items()}
            found.append(Round(int(told["n"]), reached, bool(told["dns"])))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def of(word: str, reached: Reached) -> list[str]:
    """Return what was reached of one sort, without the sort's name."""
    return sorted(
        name.partition(":")[2] for name, came in reached.items() if came and name.startswith(f"{word}:")
    )


def control(found: Sequence[Round]) -> Round | None:
    """Return the first round that reached all ports of the other pod: without one, not reaching them proves nothing."""
    wanted = sorted(str(port) for port in PORTS)
    return next((one for one in found if of(TENANT, one.reached) == wanted), None)


def judge(before: Round, after: Round) -> Verdict:
    """Return what it means. `before`: without the tenants' policy, `after`: with it."""
    reached = {word: of(word, after.reached) for word in (*FORBIDDEN, NODE) if of(word, after.reached)}
    data: dict[str, Any] = {"reached": reached}
    if reached.get(TENANT):
        return Verdict(Outcome.REACHED, "proof_tenant_reached", data)
    if reached.get(API) or reached.get(METADATA_SERVICE):
        return Verdict(Outcome.REACHED, "proof_service_reached", data)
    if before.dns and not after.dns:
        return Verdict(Outcome.APART, "proof_without_names", data)
    if reached.get(NODE):
        return Verdict(Outcome.APART, "proof_node_reached", data)
    return Verdict(Outcome.APART, "proof_apart", data)

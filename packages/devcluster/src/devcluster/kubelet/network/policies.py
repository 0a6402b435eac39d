"""NetworkPolicies as nftables rules for one pod's own namespace. Pure: from objects to the text that `nft -f` loads.

The rules are those of kubernetes.io/docs/concepts/services-networking/network-policies: a direction in which no policy
selects the pod is open, otherwise what no policy allows is dropped. As there, replies and traffic to and from the pod's
node always pass; all nodes and all Services of this cluster are the gateway of the pods' network. Pods have IPv4
addresses only, so IPv6 is dropped wherever a policy selects the pod.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from devcluster.resources import Obj
from devcluster.values.selectors import match_labels

TABLE = "inet network_policies"
PROTOCOLS = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}
OVER = ("Failed", "Succeeded")
HIGHEST_PORT = 65535
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Objects:
    """All that decides: policies, labels of namespaces by name, and pods."""

    policies: Sequence[Obj]
    namespaces: Mapping[str, Labels]
    pods: Sequence[Obj]


@dataclass(frozen=True)
class Direction:
    name: str
    rules: str
    peers: str
    hook: str
    address: str
    device: str


INGRESS = Direction("Ingress", "ingress", "from", "input", "saddr", "iif")
EGRESS = Direction("Egress", "egress", "to", "output", "daddr", "oif")


def ruleset(pod: Obj, node: str, objects: Objects) -> str:
    """Return what `nft -f` loads in one transaction for this pod. `node`: address whose traffic always passes."""
    chains = "".join(_chain(pod, node, objects, direction) for direction in (INGRESS, EGRESS))
    return f"table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n{chains}}}\n"


def selecting(pod: Obj, objects: Objects, direction: Direction) -> list[Obj]:
    """Return the policies that isolate the pod in this direction."""
    meta = pod["metadata"]
    return [
        policy
        for policy in objects.policies
        if policy["metadata"]["namespace"] == meta["namespace"]
        and direction.name in types_of(policy["spec"])
        and match_labels(policy["spec"].get("podSelector") or {}, meta.get("labels") or {})
    ]


def types_of(spec: Obj) -> list[str]:
    """Return the directions of a policy; without policyTypes that is Ingress, and Egress if it has such rules."""
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _chain(pod: Obj, node: str, objects: Objects, direction: Direction) -> str:
    policies = selecting(pod, objects, direction)
    if not policies:
        return ""
    lines = [
        f"type filter hook {direction.hook} priority filter; policy drop;",
        f'{direction.device} "lo" accept',
        "ct state established,related accept",
        f"ip {direction.address} {node} accept",
    ]
    for policy in policies:
        for rule in policy["spec"].get(direction.rules) or []:
            space = policy["metadata"]["namespace"]
            lines += [f"{match} accept" for match in _Rule(pod, rule, space, objects, direction).matches()]
    return f"  chain {direction.hook} {{\n" + "".join(f"    {line}\n" for line in lines) + "  }\n"


@dataclass(frozen=True)
class _Rule:
    """Rule of a policy of the namespace `space`, seen from one pod."""

    pod: Obj
    rule: Obj
    space: str
    objects: Objects
    direction: Direction

    def matches(self) -> Iterator[str]:
        peers = self.rule.get(self.direction.peers)
        if not peers:
            yield from self._all_with_ports("meta nfproto ipv4", self.objects.pods)
        for peer in peers or []:
            if "ipBlock" in peer:
                if block := self._block(peer["ipBlock"]):
                    yield from self._all_with_ports(
                        block, [p for p in self.objects.pods if _inside(p, peer["ipBlock"])]
                    )
            else:
                yield from self._pods(self._selected(peer))

    def _all_with_ports(self, match: str, pods: Sequence[Obj]) -> Iterator[str]:
        """Yield matches of addresses; a port that egress names is a port of those of these pods that have it."""
        yield from (f"{match} {port}".strip() for port in ports_of(self.rule, self._named_by()))
        if self.direction is EGRESS and any(isinstance(p.get("port"), str) for p in _ports(self.rule)):
            named = {"ports": [p for p in _ports(self.rule) if isinstance(p.get("port"), str)]}
            for pod in pods:
                if address := address_of(pod):
                    yield from (f"ip daddr {address} {port}" for port in ports_of(named, pod))

    def _named_by(self) -> Obj | None:
        """Pod whose containers give named ports their numbers, if it is the same for every peer."""
        return self.pod if self.direction is INGRESS else None

    def _block(self, block: Obj) -> str:
        cidr, *excepted = (network(text) for text in (block.get("cidr"), *(block.get("except") or [])))
        if not isinstance(cidr, IPv4Network) or None in excepted:
            return ""
        apart = [other for other in excepted if isinstance(other, IPv4Network)]
        parts = [f"ip {self.direction.address} {cidr}" if cidr.prefixlen else "meta nfproto ipv4"]
        return " ".join([*parts, *(f"ip {self.direction.address} != {other}" for other in apart)])

    def _selected(self, peer: Obj) -> Iterator[Obj]:
        for pod in self.objects.pods:
            meta = pod["metadata"]
            if "namespaceSelector" in peer:
                labels = self.objects.namespaces.get(meta["namespace"])
                if labels is None or not match_labels(peer["namespaceSelector"], labels):
                    continue
            elif meta["namespace"] != self.space:
                continue
            if match_labels(peer.get("podSelector") or {}, meta.get("labels") or {}):
                yield pod

    def _pods(self, pods: Iterator[Obj]) -> Iterator[str]:
        by_ports: dict[tuple[str, ...], list[str]] = {}
        for pod in pods:
            if address := address_of(pod):
                ports = ports_of(self.rule, self._named_by() or pod)
                by_ports.setdefault(ports, []).append(address)
        for ports, addresses in by_ports.items():
            match = f"ip {self.direction.address} {{ {', '.join(sorted(set(addresses)))} }}"
            yield from (f"{match} {port}".strip() for port in ports)


def address_of(pod: Obj) -> str:
    """Return the pod's address; empty if it has none, or none any more."""
    status = pod.get("status") or {}
    return "" if status.get("phase") in OVER else str(status.get("podIP") or "")


def ports_of(rule: Obj, pod: Obj | None) -> tuple[str, ...]:
    """Return the matches of a rule's ports; one empty match for all ports. `pod` gives named ports their numbers."""
    if not _ports(rule):
        return ("",)
    return tuple(match for port in _ports(rule) for match in _port(port, pod))


def _ports(rule: Obj) -> list[Obj]:
    return rule.get("ports") or []


def _port(entry: Obj, pod: Obj | None) -> Iterator[str]:
    protocol, port = entry.get("protocol") or "TCP", entry.get("port")
    word = PROTOCOLS.get(protocol)
    if word is None:
        return
    if port is None:
        yield f"meta l4proto {word}"
    elif isinstance(port, str):
        yield from (f"{word} dport {number}" for number in numbers_of(pod, port, protocol))
    elif port <= (last := entry.get("endPort") or port) and port > 0 and last <= HIGHEST_PORT:
        yield f"{word} dport {port}" if last == port else f"{word} dport {port}-{last}"


def numbers_of(pod: Obj | None, name: str, protocol: str) -> list[int]:
    """Return the ports of the pod's containers that have this name and protocol."""
    containers = pod["spec"].get("containers", []) if pod else []
    return [
        int(port["containerPort"])
        for container in containers
        for port in container.get("ports") or []
        if port.get("name") == name and (port.get("protocol") or "TCP") == protocol
    ]


def network(text: str | None) -> IPv4Network | IPv6Network | None:
    """Return a network; None for what is none."""
    try:
        return ip_network(text or "", strict=False)
    except ValueError:
        return None


def _inside(pod: Obj, block: Obj) -> bool:
    """Return True if the pod's address is in the block and in none of its exceptions."""
    address = network(address_of(pod))

    def has(text: str | None) -> bool:
        found = network(text)
        return (
            isinstance(address, IPv4Network) and isinstance(found, IPv4Network) and address.subnet_of(found)
        )

    return has(block.get("cidr")) and not any(has(other) for other in block.get("except") or [])

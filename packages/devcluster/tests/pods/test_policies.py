"""NetworkPolicies as nftables rules: drawn policies and packets, against a plain reading of what policies mean."""

import ipaddress
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.kubelet.network.policies import EGRESS, INGRESS, Direction, Objects, ruleset
from devcluster.testing.cluster import ROOT
from devcluster.testing.kube import Obj

NODE = "10.244.0.1"
SPACES = {"a": {"team": "a"}, "b": {"team": "b"}, "dns": {"team": "dns", "is": "dns"}}
CIDRS = ("10.244.0.0/16", "10.244.1.0/24", "10.244.1.2/32", "10.0.0.0/8", "0.0.0.0/0", "192.0.2.0/24", "::/0")
STRANGERS = ("10.244.0.3", "10.244.9.9", "192.0.2.1", "8.8.8.8")
PORTS = (53, 80, 8080, 8888)
PROTOCOLS = ("TCP", "UDP", "SCTP")


@dataclass(frozen=True)
class Packet:
    address: str
    protocol: str
    port: int


# --- What is drawn


def pod(space: str, number: int, labels: dict[str, str], ports: Sequence[Obj]) -> Obj:
    address = f"10.244.1.{number}"
    return {
        "metadata": {"namespace": space, "name": f"p{number}", "uid": f"u{number}", "labels": labels},
        "spec": {"containers": [{"name": "main", "ports": list(ports)}]},
        "status": {"podIP": address, "phase": "Running"},
    }


labels = st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "x"}])
selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]},
        {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
    ]
)
of_spaces = st.sampled_from(
    [
        {},
        {"matchLabels": {"team": "b"}},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]},
    ]
)
blocks = st.builds(
    lambda cidr, excepted: {"ipBlock": {"cidr": cidr, **({"except": excepted} if excepted else {})}},
    st.sampled_from(CIDRS),
    st.lists(st.sampled_from(CIDRS), max_size=2),
)
chosen = st.fixed_dictionaries(
    {}, optional={"namespaceSelector": of_spaces, "podSelector": selectors}
).filter(bool)
ranges = st.builds(
    lambda low, more, protocol: {"port": low, "endPort": low + more, "protocol": protocol},
    st.sampled_from(PORTS),
    st.integers(0, 30),
    st.sampled_from(PROTOCOLS),
)
named = st.builds(lambda n: {"port": n}, st.sampled_from([*PORTS, "web", "dns"]))
ports = ranges | named | st.builds(lambda p: {"protocol": p}, st.sampled_from(PROTOCOLS))
container_ports = st.lists(
    st.builds(
        lambda name, number, protocol: {"name": name, "containerPort": number, "protocol": protocol},
        st.sampled_from(["web", "dns"]),
        st.sampled_from(PORTS),
        st.sampled_from(["TCP", "UDP"]),
    ),
    max_size=2,
)


@st.composite
def policies(draw: st.DrawFn) -> Obj:
    def rules(peers: str) -> list[Obj]:
        rule = st.fixed_dictionaries(
            {}, optional={peers: st.lists(chosen | blocks, max_size=2), "ports": st.lists(ports, max_size=2)}
        )
        return draw(st.lists(rule, max_size=2))

    spec: Obj = {"podSelector": draw(selectors)}
    if draw(st.booleans()):
        spec["policyTypes"] = draw(st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]]))
    spec |= {"ingress": rules("from")} if draw(st.booleans()) else {}
    spec |= {"egress": rules("to")} if draw(st.booleans()) else {}
    return {"metadata": {"namespace": draw(st.sampled_from(["a", "b"])), "name": "n"}, "spec": spec}


@st.composite
def worlds(draw: st.DrawFn) -> Objects:
    spaces = draw(st.lists(st.sampled_from(list(SPACES)), min_size=1, max_size=5))
    pods = [pod(space, n, draw(labels), draw(container_ports)) for n, space in enumerate(spaces, 1)]
    return Objects(draw(st.lists(policies(), max_size=3)), SPACES, pods)


# --- What policies mean, read from the documentation


def allowed(at: Obj, packet: Packet, world: Objects, direction: Direction) -> bool:
    meta = at["metadata"]
    mine = [
        p["spec"]
        for p in world.policies
        if p["metadata"]["namespace"] == meta["namespace"]
        and fits(p["spec"]["podSelector"], meta["labels"])
        and direction.name
        in p["spec"].get("policyTypes", ["Ingress", *["Egress"] * bool(p["spec"].get("egress"))])
    ]
    if not mine or packet.address == NODE:
        return True
    other = next((p for p in world.pods if p["status"]["podIP"] == packet.address), None)
    target = at if direction is INGRESS else other
    return any(
        is_peer(rule.get(direction.peers), packet.address, other, meta["namespace"], world)
        and is_port(rule.get("ports"), packet, target)
        for spec in mine
        for rule in spec.get(direction.rules) or []
    )


def fits(selector: Obj, labels: dict[str, str]) -> bool:
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for wish in selector.get("matchExpressions", []):
        is_in = labels.get(wish["key"]) in wish.get("values", [])
        held = {"In": is_in, "NotIn": not is_in, "DoesNotExist": wish["key"] not in labels}
        if not held[wish["operator"]]:
            return False
    return True


def is_peer(peers: list[Obj] | None, address: str, other: Obj | None, space: str, world: Objects) -> bool:
    for peer in peers or []:
        if block := peer.get("ipBlock"):
            if within(address, block["cidr"]) and not any(
                within(address, c) for c in block.get("except", [])
            ):
                return True
        elif other:
            where = other["metadata"]["namespace"]
            selector = peer.get("namespaceSelector")
            right_space = (
                where == space if selector is None else fits(selector, dict(world.namespaces[where]))
            )
            if right_space and fits(peer.get("podSelector", {}), other["metadata"]["labels"]):
                return True
    return not peers


def within(address: str, cidr: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(cidr)


def is_port(ports: list[Obj] | None, packet: Packet, target: Obj | None) -> bool:
    for wish in ports or []:
        if wish.get("protocol", "TCP") != packet.protocol:
            continue
        port = wish.get("port")
        if isinstance(port, str):
            has = target["spec"]["containers"][0]["ports"] if target else []
            numbers = [
                p["containerPort"] for p in has if (p["name"], p["protocol"]) == (port, packet.protocol)
            ]
            if packet.port in numbers:
                return True
        elif port is None or port <= packet.port <= (wish.get("endPort") or port):
            return True
    return not ports


# --- What the rules do: the few words of nftables that they use


def passes(text: str, packet: Packet, direction: Direction) -> bool:
    _, found, chain = text.partition(f"chain {direction.hook} {{")
    if not found:
        return True
    lines = [line.strip() for line in chain.split("\n  }")[0].splitlines() if line.strip()]
    assert lines[0] == f"type filter hook {direction.hook} priority filter; policy drop;"
    return any(matches(line, packet, direction) for line in lines[1:])


def matches(line: str, packet: Packet, direction: Direction) -> bool:
    words = line.split()
    assert words.pop() == "accept", line
    if words[0] in ("iif", "oif", "ct"):
        return False  # a new connection from another machine
    held = True
    while words:
        first, second = words.pop(0), words.pop(0)
        if (first, second) == ("meta", "nfproto"):
            assert words.pop(0) == "ipv4"
        elif (first, second) == ("meta", "l4proto"):
            held &= words.pop(0).upper() == packet.protocol
        elif first == "ip":
            assert second == direction.address
            held &= of_address(words, packet.address)
        else:
            assert second == "dport"
            low, _, high = words.pop(0).partition("-")
            held &= first.upper() == packet.protocol and int(low) <= packet.port <= int(high or low)
    return held


def of_address(words: list[str], address: str) -> bool:
    word = words.pop(0)
    if word == "!=":
        return not within(address, words.pop(0))
    if word != "{":
        return within(address, word)
    members = []
    while (word := words.pop(0)) != "}":
        members.append(word.rstrip(","))
    return address in members


@given(worlds(), st.data())
def test_rules_pass_what_the_policies_allow_and_nothing_else(world: Objects, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(world.pods))
    text = ruleset(at, NODE, world)
    addresses = [p["status"]["podIP"] for p in world.pods if p is not at]
    for direction in (INGRESS, EGRESS):
        for address in (*addresses, *STRANGERS, NODE):
            for protocol in PROTOCOLS:
                for port in (*PORTS, 70):
                    packet = Packet(address, protocol, port)
                    assert passes(text, packet, direction) == allowed(at, packet, world, direction), packet


@pytest.mark.slow
@pytest.mark.skipif(not ROOT or shutil.which("nft") is None, reason="needs root and nft")
@given(worlds())
def test_the_kernel_takes_the_rules(world: Objects) -> None:
    # One call for all pods: each text replaces the last one.
    text = "".join(ruleset(at, NODE, world) for at in world.pods)
    subprocess.run(["unshare", "--net", "nft", "-f", "-"], input=text, text=True, check=True, timeout=60)


def test_nothing_of_a_policy_reaches_nft_as_it_was_written() -> None:
    """Names, networks and ports that no API server would take allow nothing, and write nothing into the rules."""
    evil = "80 accept; }"
    rule = {
        "ports": [{"port": evil}, {"port": 99999}, {"port": 80, "endPort": 70}, {"port": 1, "protocol": evil}]
    }
    peer = {"from": [{"ipBlock": {"cidr": evil}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": [evil]}}]}
    policy = {
        "metadata": {"namespace": "a", "name": "n"},
        "spec": {"podSelector": {}, "ingress": [rule, peer]},
    }
    at = pod("a", 1, {}, [])
    text = ruleset(at, NODE, Objects([policy], SPACES, [at]))
    assert text.count("accept") == 3  # loopback, replies and the node
    assert not passes(text, Packet("10.0.0.9", "TCP", 80), INGRESS)


def test_a_pod_that_has_ended_is_no_peer() -> None:
    at, ended = pod("a", 1, {}, []), pod("a", 2, {}, [])
    ended["status"]["phase"] = "Succeeded"
    policy: Obj = {"metadata": {"namespace": "a", "name": "n"}, "spec": {"podSelector": {}}}
    policy["spec"]["ingress"] = [{"from": [{"podSelector": {}}]}]
    text = ruleset(at, NODE, Objects([policy], SPACES, [at, ended]))
    assert not passes(text, Packet("10.244.1.2", "TCP", 80), INGRESS)
    assert passes(text, Packet("10.244.1.1", "TCP", 80), INGRESS)

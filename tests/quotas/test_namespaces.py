"""Access to a workspace's ports by the network policy of its tenant's namespace."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.models import Cluster
from quotas.namespaces.manifests import network_policy

POD_NETWORK = "10.42.0.0/16"


JUPYTER, SSH = 8888, 2222


def sources(connection: str, exposure: str = "load-balancer", port: int = SSH) -> list[dict[str, Any]]:
    """Return who reaches the port."""
    policy = network_policy(Cluster(connection=connection, exposure=exposure, pod_cidrs=[POD_NETWORK]))
    rules = [rule for rule in policy["ingress"] if port in [each["port"] for each in rule["ports"]]]
    return [peer for rule in rules for peer in rule["from"]]


def test_other_pods_of_the_cluster_do_not_but_for_berths_own() -> None:
    *blocks, own = sources("in-cluster")
    assert [POD_NETWORK in block["ipBlock"].get("except", ()) for block in blocks] == [True, False]
    assert own == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "berth"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "berth"}},
    }


def test_a_berth_outside_the_cluster_needs_no_exception() -> None:
    assert all("ipBlock" in source for source in sources("kubeconfig"))


@pytest.mark.parametrize("port", [JUPYTER, SSH])
def test_where_all_goes_through_berth_nobody_else_comes_in(port: int) -> None:
    [own] = sources("in-cluster", "portal", port)
    assert "podSelector" in own
    assert len(sources("kubeconfig", "portal", port)) == 2  # the gateway is outside


@pytest.mark.parametrize(
    ("exposure", "domain", "is_berths"),
    [
        ("load-balancer", "ws.example", True),
        ("load-balancer", "", False),  # people open JupyterLab at its own address
        ("node-port", "ws.example", True),
        ("node-port", "", True),
        ("portal", "ws.example", True),
    ],
)
def test_only_berths_pods_reach_jupyter_where_people_have_no_address_of_it(
    settings: Any, exposure: str, domain: str, is_berths: bool
) -> None:
    settings.WORKSPACE_DOMAIN = domain
    found = sources("in-cluster", exposure, JUPYTER)
    assert all("podSelector" in source for source in found) == is_berths
    assert all("ipBlock" in source for source in sources("kubeconfig", exposure, JUPYTER))


# --- What a workspace reaches


def reaches(address: str, **networks: Any) -> bool:
    """Return True if the policy lets a workspace reach this address on any port, as an enforcer reads it."""
    rules = network_policy(Cluster(**networks))["egress"]
    blocks = [peer["ipBlock"] for rule in rules if "ports" not in rule for peer in rule["to"]]
    ip = ip_address(address)
    return any(
        ip in ip_network(block["cidr"])
        and not any(ip in ip_network(cidr) for cidr in block.get("except", ()))
        for block in blocks
    )


CLUSTER = {"pod_cidrs": [POD_NETWORK], "service_cidrs": ["10.43.0.0/16"], "api_cidrs": ["203.0.113.7/32"]}
ITSELF = ["10.42.1.1", "10.43.0.1", "203.0.113.7"]
METADATA = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"]


@pytest.mark.parametrize(
    "address",
    [
        *ITSELF,
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "fe80::1",
        "fd12::1",
        *METADATA,
    ],
)
def test_neither_the_cluster_nor_private_networks_nor_metadata_are_reached(address: str) -> None:
    assert not reaches(address, **CLUSTER)
    assert not reaches(address) or address == "203.0.113.7"


NETWORKS = st.lists(
    st.sampled_from(
        ["10.0.0.0/8", "10.96.0.0/16", "10.96.0.1/32", "10.96.0.0/24", "192.168.0.0/16", "192.168.7.0/24",
         "169.254.20.0/24", "203.0.113.7/32", "203.0.113.0/24", "fd00::/8", "fd00:1::/32", "0.0.0.0/1"]
    ),
    max_size=4,
)  # fmt: skip


def overlaps(cidrs: list[str]) -> list[tuple[str, str]]:
    return [
        (one, other) for one, other in combinations(cidrs, 2) if ip_network(one).overlaps(ip_network(other))
    ]


@given(
    networks=st.fixed_dictionaries(
        dict.fromkeys(("pod_cidrs", "service_cidrs", "api_cidrs", "denied_cidrs", "allowed_cidrs"), NETWORKS)
    )
)
def test_no_two_blocks_of_a_rule_overlap_nor_two_of_its_exceptions(networks: dict[str, list[str]]) -> None:
    policy = network_policy(Cluster(**networks))
    for peers in [*(rule["from"] for rule in policy["ingress"]), *(rule["to"] for rule in policy["egress"])]:
        blocks = [peer["ipBlock"] for peer in peers if "ipBlock" in peer]
        excepted = [cidr for block in blocks for cidr in block.get("except", ())]
        assert (overlaps([block["cidr"] for block in blocks]), overlaps(excepted)) == ([], [])


FOUND = {
    "found_networks": {
        "pods": ["198.51.100.0/24"],
        "services": ["192.0.2.0/24"],
        "api": ["203.0.113.7/32"],
        "nodes": ["203.0.113.20/32", "2001:db8:9::1/128", "10.0.0.20/32"],
    }
}


@pytest.mark.parametrize(
    "address", ["198.51.100.9", "192.0.2.9", "203.0.113.7", "203.0.113.20", "2001:db8:9::1", "10.0.0.20"]
)
def test_neither_are_the_networks_that_were_found_nor_nodes_with_public_addresses(address: str) -> None:
    assert not reaches(address, **FOUND)
    assert not reaches(address, **FOUND, allowed_cidrs=["10.0.0.0/8"])
    assert not reaches(address, **CLUSTER | FOUND)


def test_a_node_that_an_admin_allows_by_its_address_is_reached() -> None:
    assert reaches("10.0.0.20", **FOUND, allowed_cidrs=["10.0.0.20/32"])


def test_a_policy_does_not_grow_with_nodes_in_private_networks() -> None:
    def size(nodes: int) -> int:
        found = {"nodes": [f"10.0.{n // 250}.{n % 250}/32" for n in range(nodes)]}
        return len(str(network_policy(Cluster(found_networks=found))))

    assert size(1000) == size(1)


@pytest.mark.parametrize("address", ["198.51.100.1", "8.8.8.8", "2001:db8::1"])
def test_the_internet_is_reached(address: str) -> None:
    assert reaches(address, **CLUSTER)


def test_an_allowed_network_is_reached_but_never_the_cluster_inside_it() -> None:
    allowed = CLUSTER | {"allowed_cidrs": ["10.0.0.0/8", "fd12::/16"]}
    assert [reaches(address, **allowed) for address in ("10.9.0.1", "fd12::1", "172.16.0.1")] == [
        True,
        True,
        False,
    ]
    assert not any(reaches(address, **allowed) for address in ("10.42.0.9", "10.43.0.1", *METADATA))
    each = [f"{ip}/{128 if ':' in ip else 32}" for ip in METADATA]
    asked = {"allowed_cidrs": [POD_NETWORK, "10.42.0.9/32", "169.254.0.0/16", *each]}
    assert not any(reaches(address, **CLUSTER, **asked) for address in ("10.42.0.9", *METADATA))


@pytest.mark.parametrize(
    ("filled_in", "asked", "not_asked"),
    [(CLUSTER, "10.43.0.10", "10.1.2.3"), ({}, "10.96.0.10", "198.51.100.1")],
    ids=["service networks known", "unknown"],
)
def test_names_are_asked_of_the_cluster_alone(filled_in: dict[str, Any], asked: str, not_asked: str) -> None:
    (dns,) = [rule for rule in network_policy(Cluster(**filled_in))["egress"] if "ports" in rule]
    pods, *blocks = dns["to"]
    networks = [ip_network(block["ipBlock"]["cidr"]) for block in blocks]
    assert "namespaceSelector" in pods
    assert {port["port"] for port in dns["ports"]} == {53, 5353}
    for address, is_asked in ((asked, True), ("169.254.20.10", True), (not_asked, False), ("8.8.8.8", False)):
        assert any(ip_address(address) in network for network in networks) == is_asked


@given(st.lists(st.ip_addresses(v=4).map(lambda ip: str(ip_network(f"{ip}/12", strict=False))), max_size=4))
def test_what_is_excepted_lies_inside_its_block_as_kubernetes_demands(allowed: list[str]) -> None:
    for rule in network_policy(Cluster(**CLUSTER, allowed_cidrs=allowed))["egress"]:
        for block in (peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer):
            for cidr in block.get("except", ()):
                assert ip_network(cidr).subnet_of(ip_network(block["cidr"])) and cidr != block["cidr"]  # type: ignore[arg-type]


def test_the_prometheus_of_the_settings_reaches_what_programs_open_and_nothing_of_berth() -> None:
    before = network_policy(Cluster(pod_cidrs=[POD_NETWORK]))["ingress"]
    *others, rule = network_policy(Cluster(pod_cidrs=[POD_NETWORK], metrics_namespace="monitoring"))[
        "ingress"
    ]
    assert others == before
    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    open_ports = {port for each in rule["ports"] for port in range(each["port"], each["endPort"] + 1)}
    assert open_ports == set(range(1024, 65536)) - {JUPYTER, SSH}

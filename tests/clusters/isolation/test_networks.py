"""Networks that are read from a cluster's objects, whatever those hold."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.isolation import networks
from clusters.isolation.networks import known, missing, strays
from clusters.models import Cluster
from tests.cast import NETWORKS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NETWORK = st.tuples(st.ip_addresses(), st.integers(8, 32)).map(
    lambda both: str(ip_network(f"{both[0]}/{both[1]}", strict=False))
)
ADDRESS = st.ip_addresses().map(str)


def node(pods: Any = None, addresses: Any = (), **spec: Any) -> dict[str, Any]:
    return {
        "spec": {"podCIDRs": pods, **spec},
        "status": {"addresses": [{"type": kind, "address": address} for kind, address in addresses]},
    }


def pod(*addresses: str, phase: str = "Running", **spec: Any) -> dict[str, Any]:
    return {"spec": spec, "status": {"phase": phase, "podIPs": [{"ip": address} for address in addresses]}}


def in_kubernetes_words(cidr: str) -> bool:
    """Return True if Kubernetes takes it in an ipBlock: a network's own address, without anything else."""
    return str(ip_network(cidr)) == cidr


# --- Whatever the objects hold


@given(st.lists(NETWORK | ADDRESS | JSON, max_size=8))
def test_what_is_kept_is_a_network_once_and_in_order(texts: list[Any]) -> None:
    found = networks.cidrs(texts)
    assert all(in_kubernetes_words(cidr) and ip_network(cidr).prefixlen for cidr in found)
    assert found == networks.cidrs([*found, *texts][::-1]) and len(set(found)) == len(found)


@given(st.lists(NETWORK, max_size=4), st.lists(ADDRESS, max_size=4), JSON)
def test_every_network_and_address_of_the_nodes_is_found_whatever_else_they_say(
    pods: list[str], addresses: list[str], odd: Any
) -> None:
    fine = node(pods, [("InternalIP", address) for address in addresses])
    found = networks.of_nodes([{"spec": odd, "status": odd}, node(odd, [(odd, odd)], podCIDR=odd), fine])
    assert set(networks.cidrs(pods)) <= set(found["pods"])
    assert set(networks.cidrs(addresses)) <= set(found["nodes"])


@given(JSON)
def test_no_object_stops_the_search(odd: Any) -> None:
    for body in (
        odd,
        {"endpoints": odd},
        {"endpoints": [odd]},
        {"spec": odd, "status": odd},
        {"spec": {"cidrs": odd}},
    ):
        if isinstance(body, dict):
            networks.of_slices([body])
            networks.of_service_cidrs([body])
            networks.of_service(body)
            networks.of_pods([body, {"status": {"phase": "Running", "podIPs": odd, "podIP": odd}}], [])


def test_names_are_no_addresses_and_loopback_is_no_network_of_a_cluster() -> None:
    addresses = [
        ("InternalIP", "10.0.0.5"),
        ("ExternalIP", "203.0.113.9"),
        ("Hostname", "node-1"),
        ("ExternalDNS", "a.b"),
    ]
    found = networks.of_nodes([node(["10.42.0.0/24", "fd00::/64"], addresses, podCIDR="10.42.0.0/24")])
    assert found == {"pods": ["10.42.0.0/24", "fd00::/64"], "nodes": ["10.0.0.5/32", "203.0.113.9/32"]}
    assert networks.cidrs(["127.0.0.1", "::1", "0.0.0.0/0", "::/0", "fe80::1%eth0", "ten"]) == []


# Words of API servers up to 1.32 with one range (castai/kvisor#560, rancher/support-bundle-kit#46), and since then.
@pytest.mark.parametrize(
    ("message", "range_"),
    [
        (
            (
                'Service "x" is invalid: spec.clusterIPs: Invalid value: []string{"192.0.2.1"}: failed to allocate IP '
                "192.0.2.1: the provided IP (192.0.2.1) is not in the valid range. "
                "The range of valid IPs is 10.96.0.0/12"
            ),
            ["10.96.0.0/12"],
        ),
        (
            (
                'Service "x" is invalid: spec.clusterIPs: Invalid value: []string{"2001:db8::1"}: failed to allocated '
                "ip:2001:db8::1 with error:provided IP is not in the valid range. The range of valid IPs is fd01::/108"
            ),
            ["fd01::/108"],
        ),
        ("failed to allocate IP 192.0.2.1: the provided network does not match the current range", []),
        ("The range of valid IPs is 0.0.0.0/0", []),
        ("The range of valid ports is 30000-32767", []),
    ],
)
def test_the_range_is_read_from_a_refusal(message: str, range_: list[str]) -> None:
    assert networks.of_refusal(message) == range_


def test_pods_outside_the_nodes_networks_are_noticed() -> None:
    pods = [
        pod("10.42.0.7", "fd00::7"),
        pod("10.8.0.1"),
        pod("10.8.0.2", phase="Succeeded"),
        pod("192.0.2.5", hostNetwork=True),
        pod("127.16.0.9"),
    ]
    assert networks.of_pods(pods, ["10.42.0.0/16", "fd00::/64"]) == ["10.8.0.1/32"]


# --- An admin's entries and what was found

FOUND = {
    "pods": ["10.42.0.0/24"],
    "services": ["10.43.0.0/16"],
    "api": ["203.0.113.7/32"],
    "nodes": ["198.51.100.5/32"],
    "entrances": ["10.43.0.1/32"],
}


def test_both_are_used_together() -> None:
    networks = known(Cluster(found_networks=FOUND, pod_cidrs=["10.42.0.0/16"], api_cidrs=["192.0.2.1/32"]))
    assert networks.pods == ["10.42.0.0/16", "10.42.0.0/24"]
    assert networks.services == ["10.43.0.0/16"]
    assert set(networks.api) == {"192.0.2.1/32", "203.0.113.7/32", "10.43.0.1/32"}
    assert networks.nodes == ["198.51.100.5/32"]


def test_a_node_that_an_admin_allows_by_its_own_address_is_not_denied() -> None:
    assert known(Cluster(found_networks=FOUND, allowed_cidrs=["198.51.100.0/24"])).nodes == [
        "198.51.100.5/32"
    ]
    assert known(Cluster(found_networks=FOUND, allowed_cidrs=["198.51.100.5/32"])).nodes == []


@given(st.sets(st.sampled_from(sorted(NETWORKS))), st.sets(st.sampled_from(["pods", "services", "api"])))
def test_each_network_is_missing_until_an_admin_or_the_cluster_names_it(
    filled: set[str], found: set[str]
) -> None:
    fields = {"pods": "pod_cidrs", "services": "service_cidrs", "api": "api_cidrs"}
    cluster = Cluster(
        found_networks={name: FOUND[name] for name in found} | {"entrances": FOUND["entrances"]},
        **{name: NETWORKS[name] for name in filled},
    )
    assert set(missing(cluster)) == set(fields.values()) - filled - {fields[name] for name in found}


def test_pods_elsewhere_make_the_pod_networks_unknown_until_an_admin_names_theirs() -> None:
    found = FOUND | {"pod_addresses": ["10.8.0.1/32", "fd00::9/128"]}
    assert missing(Cluster(found_networks=found)) == ["pod_cidrs"]
    assert strays(Cluster(found_networks=found, pod_cidrs=["10.8.0.0/16"])) == ["fd00::9"]
    assert missing(Cluster(found_networks=found, pod_cidrs=["10.8.0.0/16", "fd00::/64"])) == []

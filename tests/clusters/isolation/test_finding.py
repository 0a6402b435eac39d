"""Search for networks on a Kubernetes API: what it finds, what a refusal leaves, and what a change sets off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import signals
from clusters.api import Api
from clusters.connections import connect
from clusters.doctor import Check, examine
from clusters.errors import ClusterUnavailable
from clusters.isolation.finding import OF_API_SERVER, look, refresh
from clusters.isolation.networks import missing
from clusters.models import Cluster
from clusters.watch.networks import EVERY_SECONDS, Networks
from tests.clusters.stub import Request, Stub
from tests.own_rights import OwnRights

pytestmark = pytest.mark.django_db

NODE, SLICE = "berth-test-networks", "berth-test-networks"
PUBLIC, POD_NETWORK, API_SERVER = "203.0.113.9", "10.217.0.0/24", "198.51.100.77"


@pytest.fixture
def furnished(api: Api) -> Iterator[None]:
    """A node with a public address and a pod network, and an address behind the API server's Service."""
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "spec": {"podCIDR": POD_NETWORK, "podCIDRs": [POD_NETWORK], "unschedulable": True},
        "status": {"addresses": [{"type": "ExternalIP", "address": PUBLIC}]},
    }
    endpoints: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": SLICE, "namespace": "default", "labels": OF_API_SERVER},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [API_SERVER]}],
        "ports": [],
    }
    try:
        api.create(node)
        api.create(endpoints)
        yield
    finally:
        api.delete("EndpointSlice", "default", SLICE)
        api.delete("Node", None, NODE)


@pytest.fixture
def cluster(reached_cluster: Cluster) -> Cluster:
    reached_cluster.pod_cidrs = reached_cluster.service_cidrs = reached_cluster.api_cidrs = []
    reached_cluster.save()
    return reached_cluster


@pytest.fixture
def announced() -> Iterator[list[Cluster]]:
    """Clusters whose networks changed, as the rooms above hear of it."""
    heard: list[Cluster] = []

    def hear(cluster: Cluster, **_: object) -> None:
        heard.append(cluster)

    signals.networks_changed.connect(hear)
    yield heard
    signals.networks_changed.disconnect(hear)


@pytest.mark.usefixtures("furnished")
def test_a_cluster_tells_its_networks_by_itself(api: Api, cluster: Cluster, announced: list[Cluster]) -> None:
    assert set(missing(cluster)) == {"pod_cidrs", "service_cidrs", "api_cidrs"}
    assert refresh(cluster, api)
    found = Cluster.objects.get().found_networks
    assert POD_NETWORK in found["pods"] and f"{PUBLIC}/32" in found["nodes"]
    assert f"{API_SERVER}/32" in found["api"] and found["services"]
    assert Cluster.objects.get().networks_found_at is not None
    assert missing(Cluster.objects.get()) == []
    assert not refresh(cluster, api)
    assert announced == [cluster]


@pytest.mark.usefixtures("furnished")
def test_a_service_network_is_asked_for_without_creating_anything(api: Api) -> None:
    before = {body["metadata"]["uid"] for body in api.list("Service")}
    look(api)
    assert {body["metadata"]["uid"] for body in api.list("Service")} == before


@pytest.mark.usefixtures("furnished")
def test_doctor_finds_them_too(cluster: Cluster, announced: list[Cluster]) -> None:
    findings = [finding for finding in examine(cluster) if finding.check == Check.ISOLATION]
    proof, networks = findings
    assert (networks.level, proof.level) == ("ok", "warn")  # the policies are made, and nobody tried them
    assert announced == [cluster]


@pytest.mark.usefixtures("furnished")
def test_the_watch_finds_them_and_looks_again_soon_after_a_failure(cluster: Cluster, tmp_path: Path) -> None:
    assert Networks(cluster).step() == EVERY_SECONDS
    assert missing(Cluster.objects.get()) == []
    cluster.kubeconfig_path = str(tmp_path / "absent")
    assert Networks(cluster).step() < EVERY_SECONDS
    assert missing(Cluster.objects.get()) == []


@pytest.mark.usefixtures("furnished")
def test_a_right_that_is_taken_away_forgets_nothing(
    kubeconfig: str, cluster: Cluster, tmp_path: Path, announced: list[Cluster]
) -> None:
    rights = OwnRights(kubeconfig, tmp_path)
    try:
        cluster.kubeconfig_path = str(rights.kubeconfig)
        refresh(cluster, connect(cluster))
        before = Cluster.objects.get().found_networks
        assert before["services"] and before["api"]
        rights.change(
            [
                rule
                for rule in rights.rules
                if not {"nodes", "servicecidrs", "endpointslices"} & {*rule["resources"]}
            ]
        )
        assert not refresh(cluster, connect(cluster))
    finally:
        rights.clear_away()
    assert Cluster.objects.get().found_networks == before
    assert announced == [cluster]


def test_an_unreachable_cluster_forgets_nothing(cluster: Cluster, stub: Stub) -> None:
    Cluster.objects.update(found_networks={"pods": [POD_NETWORK]})
    stub.answers = [lambda request: request.json(503, {})]
    with pytest.raises(ClusterUnavailable):
        refresh(cluster, stub.api)
    assert Cluster.objects.get().found_networks == {"pods": [POD_NETWORK]}


def test_a_receiver_that_fails_is_told_again(cluster: Cluster, api: Api) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("a fault")

    signals.networks_changed.connect(fail)
    try:
        with pytest.raises(RuntimeError):
            refresh(cluster, api)
    finally:
        signals.networks_changed.disconnect(fail)
    assert Cluster.objects.get().found_networks == {}


# --- An API server without ServiceCIDR objects (Kubernetes up to 1.32): it names the range where it refuses a Service


def test_an_older_api_server_names_its_service_networks_in_a_refusal(stub: Stub) -> None:
    def answer(request: Request) -> None:
        listed: dict[str, Any] = {"metadata": {}, "items": []}
        if request.command == "POST":
            asked = request.content.decode()
            range_ = "fd01::/108" if "2001:db8::1" in asked else "10.30.0.0/16"
            assert request.query["dryRun"] == "All"
            message = f'Service "x" is invalid: spec.clusterIPs: The range of valid IPs is {range_}'
            request.json(422, {"kind": "Status", "reason": "Invalid", "message": message})
        elif "servicecidrs" in request.path or request.path.startswith(
            "/api/v1/namespaces/default/services/"
        ):
            request.json(404, {"kind": "Status", "reason": "NotFound", "message": "not found"})
        else:
            request.json(200, listed)

    stub.answers = [answer]
    assert look(stub.api) == {
        "pods": [],
        "nodes": [],
        "pod_addresses": [],
        "services": ["10.30.0.0/16", "fd01::/108"],
    }

"""Networks of a trial: what its workspaces need at private addresses stays open, and nothing else."""

from __future__ import annotations

import pytest

from clusters.models import Cluster
from devcluster.kubelet.network import podnetwork
from portal.up import networks, seed
from quotas.namespaces.manifests import network_policy

ADDRESSES = {
    "proxy": ["10.1.2.3"],
    "index": ["192.168.7.7"],
    "world": ["198.51.100.7"],
    "127.0.0.1": ["127.0.0.1"],
}


def needed(pip: str = "", **environ: str) -> list[str]:
    return networks.needed(environ, pip, lambda host: ADDRESSES.get(host, []))


def test_private_proxies_and_indexes_are_open_and_others_need_no_word() -> None:
    told = {
        "HTTP_PROXY": "http://proxy:3128",
        "https_proxy": "proxy:3128",
        "PIP_INDEX_URL": "https://a:b@index/x",
    }
    assert needed(**told) == ["10.1.2.3/32", "192.168.7.7/32"]
    assert needed(pip="[global]\nindex-url = http://index/simple") == ["192.168.7.7/32"]
    assert needed(HTTP_PROXY="http://world:1", ALL_PROXY="http://127.0.0.1:9", OTHER="http://proxy") == []
    assert needed(HTTP_PROXY="http://[broken", HTTPS_PROXY="http://gone:1") == []


def test_the_networks_are_those_of_the_trial_cluster() -> None:
    assert networks.TRIAL["pod_cidrs"] == [podnetwork.NETWORK]
    assert networks.TRIAL["service_cidrs"] == [f"{podnetwork.NAMESERVER}/32"]


def test_a_trials_policy_names_its_name_server_and_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_DEVCLUSTER_PORT", "1")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    monkeypatch.setenv("HTTP_PROXY", "http://10.9.9.9:3128")
    cluster: Cluster = seed.expected_cluster()
    dns, _world, proxy = network_policy(cluster)["egress"]
    assert {"ipBlock": {"cidr": "10.244.0.3/32"}} in dns["to"]
    assert {"ipBlock": {"cidr": "10.9.9.9/32"}} in proxy["to"]

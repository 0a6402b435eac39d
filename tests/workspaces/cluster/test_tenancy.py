"""Access to a workspace's ports by the network policy of its tenant's namespace."""

from __future__ import annotations

from typing import Any

from clusters.models import Cluster
from workspaces.cluster.tenancy import network_policy

POD_NETWORK = "10.42.0.0/16"


def sources(connection: str) -> list[dict[str, Any]]:
    policy = network_policy(Cluster(connection=connection, pod_cidrs=[POD_NETWORK]))
    [rule] = policy["ingress"]
    return list(rule["from"])


def test_other_pods_of_the_cluster_do_not_but_for_berths_own() -> None:
    *blocks, own = sources("in-cluster")
    assert [POD_NETWORK in block["ipBlock"].get("except", ()) for block in blocks] == [True, False]
    assert own == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "berth"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "berth"}},
    }


def test_a_berth_outside_the_cluster_needs_no_exception() -> None:
    assert all("ipBlock" in source for source in sources("kubeconfig"))

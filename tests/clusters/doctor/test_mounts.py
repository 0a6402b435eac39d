"""Tests of doctor's findings about pods that may hold a volume on a node."""

from __future__ import annotations

from typing import Any, cast

import pytest

from clusters.api import Api
from clusters.doctor import mounts
from tests.clusters.doctor.told import Said


def pod(name: str, path: str, *, image: str = "driver:1", **mount: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "volumeMounts": [{"name": "node", "mountPath": "/x", **mount}],
    }
    owner = {"kind": "DaemonSet", "name": "agents"}
    return {
        "metadata": {"namespace": "system", "name": name, "ownerReferences": [owner]},
        "spec": {"containers": [container], "volumes": [{"name": "node", "hostPath": {"path": path}}]},
    }


def warnings(*pods: dict[str, Any]) -> list[str]:
    return [finding.message for finding in mounts.mounts(cast(Api, Said(Pod=list(pods))))]


@pytest.mark.parametrize("path", ["/", "/var/lib/kubelet", "/var/lib/kubelet/"])
def test_a_private_mount_of_the_nodes_root_is_named_once_for_all_pods_of_its_daemonset(path: str) -> None:
    [said] = warnings(pod("agents-1", path), pod("agents-2", path))
    assert said.count("system/agents") == 1


@pytest.mark.parametrize("path", ["/", "/var/lib/kubelet"])
@pytest.mark.parametrize("how", ["HostToContainer", "Bidirectional"])
def test_a_mount_that_follows_the_node_is_well(path: str, how: str) -> None:
    assert warnings(pod("agents-1", path, mountPropagation=how)) == []


def test_other_folders_of_the_node_are_well() -> None:
    assert warnings(pod("a", "/var/log"), pod("b", "/var/lib/kubelet/device-plugins")) == []


def test_storage_plugins_of_different_versions_are_named() -> None:
    path = "/var/lib/kubelet/plugins/rbd.csi.ceph.com"
    same = [pod("a", path), pod("b", path)]
    assert warnings(*same) == []
    [said] = warnings(*same, pod("c", path, image="driver:2"))
    assert "system/agents" in said


def test_a_pod_of_the_cluster_with_nothing_of_a_node_is_well() -> None:
    bare = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main"}]}}
    assert warnings(bare) == []

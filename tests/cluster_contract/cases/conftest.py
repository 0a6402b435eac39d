"""Cases that hold on any Kubernetes: on devcluster in every run, on the cluster of $BERTH_TEST_KUBECONFIG when set.

A cluster of $BERTH_TEST_KUBECONFIG needs an image that runs for ever (a pause image), named by $BERTH_TEST_IMAGE, a
node that announces four nvidia.com/gpu, and the classes local-fast (binds on first use, the default) and net-shared
(binds at once). $BERTH_TEST_SHELL_IMAGE names an image with sh and python3, for a node that has an InternalIP. Without
it, or on devcluster without root, the cases whose containers must do something are skipped.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.testing.cluster import ROOT, DevCluster
from devcluster.testing.kube import Kube
from tests.cluster_contract.cases.shells import Ground

NODES = """
nodes:
  - {name: gpu, cpu: 64, memory: 512Gi, pods: 1000,
     gpus: {product: NVIDIA-A100-SXM4-80GB, count: 4, memory_mib: 81920, compute: "8.0", family: ampere}}
  - {name: plain, cpu: 16, memory: 64Gi, pods: 1000}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
"""
RUNNING = "nodes: [{name: here, cpu: 8, memory: 64Gi}]"


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    if given := os.environ.get("BERTH_TEST_KUBECONFIG"):
        yield Kube(Path(given))
        return
    cluster = DevCluster(tmp_path_factory.mktemp("cases"), "--pods", "played", nodes=NODES)
    cluster.start()
    yield cluster
    cluster.end()


@pytest.fixture
def space(kube: Kube) -> Iterator[str]:
    """Path of a namespace of the test's own."""
    path = kube.fresh()
    yield path
    kube.call("DELETE", path)


@pytest.fixture(scope="session")
def image() -> str:
    return os.environ.get("BERTH_TEST_IMAGE", "local/none:1")


@pytest.fixture(scope="session")
def runner(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kube, str]]:
    """Cluster whose containers really run, and an image with a shell for them."""
    if os.environ.get("BERTH_TEST_KUBECONFIG"):
        if not (given := os.environ.get("BERTH_TEST_SHELL_IMAGE")):
            pytest.skip("no image with a shell is named")
        yield kube, given
        return
    if not ROOT or shutil.which("unshare") is None:
        pytest.skip("process pods with disks need root and util-linux")
    image = "docker.io/local/venv:1"
    arguments = ["--pods", "process", "--image", f"{image}={sys.prefix}"]
    cluster = DevCluster(tmp_path_factory.mktemp("runner"), *arguments, nodes=RUNNING)
    cluster.start()
    yield cluster, image
    cluster.end()


def _ground(runner: tuple[Kube, str]) -> Iterator[Ground]:
    kube, image = runner
    space, nodes = kube.fresh(), kube.get("/api/v1/nodes")["items"]
    ours = [n for n in nodes if "InternalIP" in [a["type"] for a in n["status"].get("addresses", [])]]
    yield Ground(kube, space, ours[0]["metadata"]["name"], image)
    kube.call("DELETE", space)


@pytest.fixture
def ground(runner: tuple[Kube, str]) -> Iterator[Ground]:
    yield from _ground(runner)


@pytest.fixture(scope="module")
def module_ground(runner: tuple[Kube, str]) -> Iterator[Ground]:
    yield from _ground(runner)

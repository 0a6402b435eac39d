"""Cases that hold on any Kubernetes: on devcluster in every run, on the cluster of $BERTH_TEST_KUBECONFIG when set.

There, $BERTH_TEST_IMAGE names an image that its nodes can run for ever (a pause image), one node announces four
nvidia.com/gpu, and the classes local-fast (binds on first use, the default) and net-shared (binds at once) exist.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.devcluster.cluster import DevCluster
from tests.kube import Kube

NODES = """
nodes:
  - {name: gpu, cpu: 64, memory: 512Gi, pods: 1000,
     gpus: {product: NVIDIA-A100-SXM4-80GB, count: 4, memory_mib: 81920, compute: "8.0", family: ampere}}
  - {name: plain, cpu: 16, memory: 64Gi, pods: 1000}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
"""


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
    """The path of a namespace of the test's own."""
    path = kube.fresh()
    yield path
    kube.call("DELETE", path)


@pytest.fixture(scope="session")
def image() -> str:
    return os.environ.get("BERTH_TEST_IMAGE", "local/none:1")

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, running

TWO_NODES = """
nodes:
  - {name: gpu, count: 2, cpu: 64, memory: 512Gi, pods: 1000,
     gpus: {product: NVIDIA-A100-SXM4-80GB, count: 8, memory_mib: 81920}}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """Cluster with two nodes of 8 GPUs and simulated pods."""
    yield from running(tmp_path_factory.mktemp("devcluster"), "--pods", "played", nodes=TWO_NODES)


@pytest.fixture
def space(cluster: DevCluster) -> Iterator[str]:
    """Path of a namespace for this test; its faults end with it."""
    path = cluster.fresh()
    yield path
    cluster.call("DELETE", "/_faults")
    cluster.call("DELETE", path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path

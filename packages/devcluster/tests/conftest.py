from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, running
from helpers import shells

PLAYED = ("--pods", "played")
TWO_NODES = """
nodes:
  - {name: gpu, count: 2, cpu: 64, memory: 512Gi, pods: 1000,
     gpus: {product: NVIDIA-A100-SXM4-80GB, count: 8, memory_mib: 81920}}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
"""


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """Cluster of a module, with its ARGUMENTS and NODES; by default simulated pods on two nodes of 8 GPUs."""
    arguments = getattr(request.module, "ARGUMENTS", PLAYED)
    nodes = getattr(request.module, "NODES", shells.NODES if arguments is shells.PROCESSES else TWO_NODES)
    yield from running(tmp_path_factory.mktemp("devcluster"), *arguments, nodes=nodes)


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

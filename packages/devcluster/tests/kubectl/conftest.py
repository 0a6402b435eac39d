from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster
from helpers.kubectl import Kubectl


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(cluster: DevCluster, home: Path) -> Kubectl:
    return Kubectl(cluster.kubeconfig, home, cluster.fresh().rpartition("/")[2])

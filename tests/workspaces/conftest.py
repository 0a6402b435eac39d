from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devcluster.testing.cluster import running
from tests.own_rights import OwnRights

if TYPE_CHECKING:
    from tests.cast import Cast
    from tests.workspaces.play import Play


@pytest.fixture
def cast(request: pytest.FixtureRequest) -> Cast:
    from tests.cast import make_cast  # models can be imported only when Django is set up

    request.getfixturevalue("transactional_db" if _needs_transactions(request) else "db")
    return make_cast()


def _needs_transactions(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    return bool(marker and marker.kwargs.get("transaction"))


@pytest.fixture
def play(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Play:
    from tests.workspaces.play import Play
    from tests.workspaces.playing import PlayedApi
    from workspaces.runs import reconcile as reconciling

    api = PlayedApi()
    monkeypatch.setattr(reconciling, "api_for", lambda cluster: api)
    return Play(cast, api)


NODES = """
nodes:
- name: gpu
  count: 2
  cpu: 64
  memory: 512Gi
  gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 4, compute: "8.0"}
images:
  berth.local/jupyter:1: {}
played: {start_seconds: 0.02, ready_seconds: 0.02, stop_seconds: 0.02}
"""


@pytest.fixture(scope="session")
def played_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of a trial cluster whose pods are only simulated: two nodes with four GPUs each."""
    if given := os.environ.get("BERTH_TEST_KUBECONFIG"):
        yield Path(given)
        return
    for cluster in running(tmp_path_factory.mktemp("cluster"), "--pods", "played", nodes=NODES):
        yield cluster.kubeconfig


@pytest.fixture(scope="session")
def own_rights(played_cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of the same cluster for Berth's own account, with the rights of deploy/kubernetes/rbac.yaml."""
    own = OwnRights(played_cluster, tmp_path_factory.mktemp("own"))
    yield own.kubeconfig
    own.clear_away()

"""Fixtures of the cast, and of a cluster with simulated pods on which it can run workspaces.

A conftest imports them: it is read before Django is set up, so models are imported only in the functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from devcluster.testing.cluster import running
from tests.own_rights import OwnRights, bind

if TYPE_CHECKING:
    from clusters.api import Api
    from tests.cast import Cast


@pytest.fixture
def cast(request: pytest.FixtureRequest) -> Cast:
    from tests.cast import make_cast  # models can be imported only when Django is set up

    request.getfixturevalue("transactional_db" if _needs_transactions(request) else "db")
    return make_cast()


def _needs_transactions(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    return bool(marker and marker.kwargs.get("transaction"))


NODES = """
nodes:
- name: gpu
  count: 2
  cpu: 64
  memory: 512Gi
  gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 4, compute: "8.0"}
images:
  berth.local/jupyter:1: {}
  berth.local/course:1: {pull_seconds: 0.5}
  berth.local/course:2: {pull_seconds: 0.5}
  berth.local/course:3: {pull_seconds: 0.5}
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


@pytest.fixture
def house(cast: Cast, played_cluster: Path, own_rights: Path) -> Iterator[Cast]:
    """The cast on a cluster that several tests share: the tenant, and so its namespace, is this test's own.

    Berth has the rights of its manifest there, and no more.
    """
    from tests.shared.driving import api_of_admin, clear_away, move_to_a_real_node

    cast.cluster.kubeconfig_path = str(own_rights)
    bind(cast.cluster)
    cast.cluster.save()
    if "BERTH_TEST_KUBECONFIG" in os.environ:
        move_to_a_real_node(cast)
    cast.demo.slug = f"demo-{uuid4().hex[:8]}"
    cast.demo.save()
    yield cast
    clear_away(cast.demo.namespace, api_of_admin(played_cluster))


@pytest.fixture
def api(house: Cast, played_cluster: Path) -> Api:
    """API with an admin's rights, for changes to the cluster by hand or by accident."""
    from tests.shared.driving import api_of_admin

    return api_of_admin(played_cluster)

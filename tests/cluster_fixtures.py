"""A real Kubernetes API over HTTP for tests: the embedded trial cluster, or $BERTH_TEST_KUBECONFIG's."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devcluster.testing.cluster import running

if TYPE_CHECKING:  # a conftest is read before Django is set up
    from clusters.api import Api
    from clusters.models import Cluster


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[str]:
    """The path of a kubeconfig whose cluster answers."""
    if given := os.environ.get("BERTH_TEST_KUBECONFIG"):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="berth-cluster-") as folder:
        for cluster in running(Path(folder), "--pods", "played"):
            yield str(cluster.kubeconfig)


@pytest.fixture
def reached_cluster(kubeconfig: str) -> Cluster:
    """An unsaved Cluster row that uses the kubeconfig."""
    from clusters.models import Cluster
    from tests.cast import NETWORKS

    kind = Cluster.Connection.KUBECONFIG
    return Cluster(slug="real", name="Real", connection=kind, kubeconfig_path=kubeconfig, **NETWORKS)


@pytest.fixture
def api(reached_cluster: Cluster) -> Api:
    from clusters.connections import connect

    return connect(reached_cluster)


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A namespace for one test, deleted afterwards."""
    name = f"berth-test-{uuid.uuid4().hex[:8]}"
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete("Namespace", None, name)

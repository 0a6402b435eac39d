"""Tests that the observer reports gaps in its record, where a double could hide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.testing.cluster import DevCluster, running
from tests.e2e.stack import until
from tests.proof.life.observer import WORKSPACE, Observer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    yield from running(tmp_path_factory.mktemp("cluster"), "--pods", "played")


@pytest.fixture(scope="module")
def observer(cluster: DevCluster) -> Iterator[Observer]:
    observer = Observer(cluster.kubeconfig)
    observer.start()
    yield observer
    observer.stop()


CUTS: dict[str, dict[str, Any]] = {
    "a watch that is cut": {"reset_watches": True},
    "a call that fails": {"status": 500, "match": {"verb": "watch"}, "times": 3},
}


@pytest.mark.parametrize("what", CUTS)
def test_the_observer_misses_nothing_despite(what: str, cluster: DevCluster, observer: Observer) -> None:
    """Create and delete a PVC during the fault; the observer must see both."""
    cluster.call("DELETE", "/_faults")  # those of the previous test
    observer.broken.clear()
    cluster.call("POST", "/_faults", CUTS[what])
    namespace = cluster.fresh()
    claim = {
        "metadata": {
            "name": "data",
            "labels": {"app.kubernetes.io/managed-by": "berth", WORKSPACE: "w"},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    uid = cluster.create(f"{namespace}/persistentvolumeclaims", claim)["metadata"]["uid"]
    cluster.call("DELETE", f"{namespace}/persistentvolumeclaims/data")

    def is_seen() -> bool:
        return any(one.uid == uid and one.ended is not None for one in observer.lived)

    until("it was seen, and seen to go", is_seen)
    assert observer.broken == []


def test_the_observer_reports_lost_history(cluster: DevCluster, observer: Observer) -> None:
    cluster.call("DELETE", "/_faults")

    def is_told() -> bool:
        cluster.fresh()  # a change that the old watch does not know
        cluster.call("POST", "/_faults", {"expire_watches": True})
        return bool(observer.broken)

    until("it is told", is_told, pause=0.3)

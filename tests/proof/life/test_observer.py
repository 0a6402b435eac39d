"""The observer says where its record has holes, in which something double could hide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.devcluster.cluster import DevCluster, running
from tests.e2e.stack import until
from tests.proof.life.observer import Observer

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


HOLES: dict[str, dict[str, Any]] = {
    "a watch that is cut": {"reset_watches": True},
    "a call that fails": {"status": 500, "match": {"verb": "watch"}, "times": 1},
    "a history that is forgotten": {"expire_watches": True},
}


@pytest.mark.parametrize("what", HOLES)
def test_it_tells_of(what: str, cluster: DevCluster, observer: Observer) -> None:
    cluster.call("DELETE", "/_faults")  # of the one before
    observer.broken.clear()

    def is_told() -> bool:
        cluster.fresh()  # something that a watch from before does not know
        cluster.call("POST", "/_faults", HOLES[what])
        return bool(observer.broken)

    until("it is told", is_told, pause=0.3)

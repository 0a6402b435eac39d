"""Restart of a cluster, after a regular end or a kill: objects are kept, and pods that ran have provably ended."""

import signal
from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, is_ready, stateful_set

pytestmark = pytest.mark.slow

SETS = "/apis/apps/v1/namespaces/default/statefulsets"
POD = "/api/v1/namespaces/default/pods/ws-0"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_objects_stay_and_pods_that_ran_are_failed_and_made_anew(folder: Path, number: int) -> None:
    cluster = DevCluster(folder, "--pods", "played")
    cluster.start()
    try:
        cluster.create(SETS, stateful_set("ws", finalizers=["berth.dev/end-seen"]))
        before = cluster.until(POD, is_ready)
        token = cluster.token
        cluster.end(number)
        cluster.start()
        assert cluster.token == token
        ended = cluster.until(POD, lambda o: o["status"]["phase"] == "Failed")
        assert ended["metadata"]["uid"] == before["metadata"]["uid"]
        assert ended["status"]["message"] == "Pod was terminated in response to imminent node shutdown."
        assert int(ended["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
        cluster.call("PATCH", POD, {"metadata": {"finalizers": None}}, "merge")
        after = cluster.until(POD, is_ready)
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
    finally:
        cluster.end(signal.SIGKILL)


def test_one_state_directory_has_one_cluster(folder: Path) -> None:
    cluster = DevCluster(folder, "--pods", "played")
    cluster.start()
    try:
        with pytest.raises(AssertionError):
            DevCluster(folder, "--pods", "played").start()
        assert (cluster.state.stat().st_mode & 0o777, cluster.kubeconfig.stat().st_mode & 0o777) == (
            0o700,
            0o600,
        )
    finally:
        cluster.end()

"""Writes of pods outside their volumes: kept within limits, and within the space of this machine."""

import pytest

from devcluster.kubelet.storage.ephemeral import Use, capacity_bytes, excess
from devcluster.testing.cluster import DevCluster, is_gone
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.shells import PROCESSES, output, process_pods, shell

pytestmark = pytest.mark.slow

ARGUMENTS = PROCESSES
MIB = 2**20


def limited(size: str) -> Obj:
    return {"limits": {"ephemeral-storage": size}}


def evicted(cluster: DevCluster, space: str, body: Obj) -> str:
    """Return the message of the pod's eviction."""
    cluster.create(f"{space}/pods", body)
    path = f"{space}/pods/{body['metadata']['name']}"
    found = cluster.until(path, lambda o: o["status"].get("phase") == "Failed")
    assert found["status"]["reason"] == "Evicted", found["status"]
    (ended,) = found["status"]["containerStatuses"]
    assert ended["state"]["terminated"]["exitCode"] == 137
    events = f"{space}/events?fieldSelector=reason%3DEvicted"
    (event,) = cluster.until(events, lambda o: bool(o["items"]))["items"]
    assert (event["type"], event["message"]) == ("Warning", found["status"]["message"])
    return str(found["status"]["message"])


@pytest.mark.slow
@process_pods
def test_a_full_empty_dir_evicts_its_pod(cluster: DevCluster, space: str) -> None:
    mounts = {"/cache": {"emptyDir": {"sizeLimit": "10Mi"}}}
    why = evicted(cluster, space, shell("p", "head -c 20M /dev/zero > /cache/f; sleep 600", mounts))
    assert why == 'Usage of EmptyDir volume "v0" exceeds the limit "10Mi". '


@process_pods
def test_a_pod_that_writes_more_than_its_limit_is_evicted(cluster: DevCluster, space: str) -> None:
    script = "head -c 40M /dev/zero > /tmp/f; sleep 600"
    why = evicted(cluster, space, shell("p", script, resources=limited("20Mi")))
    assert why == "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. "
    uid = cluster.get(f"{space}/pods/p")["metadata"]["uid"]
    # Its space is free although the object still exists.
    until(lambda: not list((cluster.state / "scratch").glob(f"{uid}*")))


@pytest.mark.slow
@process_pods
def test_a_pod_within_its_limits_stays(cluster: DevCluster, space: str) -> None:
    mounts = {"/cache": {"emptyDir": {"sizeLimit": "50Mi"}}}
    script = "head -c 20M /dev/zero > /cache/f; head -c 20M /dev/zero > /tmp/f; sleep 3; echo well"
    assert output(cluster, space, shell("p", script, mounts, resources=limited("100Mi"))) == "well\n"


@process_pods
def test_nothing_fills_the_machine_between_two_looks(cluster: DevCluster, space: str) -> None:
    script = "cat /dev/zero > /tmp/f || true; stat -c %s /tmp/f >> /dev/termination-log"
    cluster.create(f"{space}/pods", shell("p", script, resources=limited("20Mi")))
    found = cluster.until(f"{space}/pods/p", lambda o: o["status"].get("phase") in ("Failed", "Succeeded"))
    wrote = found["status"]["containerStatuses"][0]["state"]["terminated"].get("message", "0")
    assert int(wrote) < 128 * MIB


@process_pods
def test_a_container_begins_anew_with_an_empty_tmp(cluster: DevCluster, space: str) -> None:
    script = "ls /tmp; touch /tmp/old; exit 1"
    cluster.create(f"{space}/pods", shell("p", script, restartPolicy="OnFailure"))
    path = f"{space}/pods/p"
    cluster.until(path, lambda o: "CrashLoopBackOff" in str(o["status"]))
    cluster.until(path, lambda o: o["status"]["containerStatuses"][0]["restartCount"] > 0)
    assert "old" not in str(cluster.call("GET", f"{path}/log")[1])
    cluster.call("DELETE", path)
    cluster.until(path, is_gone)


def pod(*limits: str, **volumes: Obj) -> Obj:
    containers = [
        {"name": f"c{n}", "resources": limited(limit) if limit else {}} for n, limit in enumerate(limits)
    ]
    found = [{"name": name, "emptyDir": source} for name, source in volumes.items()]
    return {"spec": {"containers": containers, "volumes": found}}


def test_one_container_beyond_its_own_limit_is_named() -> None:
    why = excess(pod("10Mi", "30Mi"), Use(containers={"c0": 12 * MIB, "c1": MIB}))
    assert why == 'Container c0 exceeded its local ephemeral storage limit "10Mi". '


def test_empty_dirs_count_for_the_pod() -> None:
    body = pod("10Mi", "30Mi", cache={})
    assert not excess(body, Use({"cache": 39 * MIB}))
    why = excess(body, Use({"cache": 41 * MIB}))
    assert why == "Pod ephemeral local storage usage exceeds the total limit of containers 40Mi. "


def test_memory_and_limitless_empty_dirs_evict_nobody() -> None:
    body = pod("", shm={"medium": "Memory", "sizeLimit": "1Mi"}, cache={})
    assert not excess(body, Use({"cache": 10**12}))


def test_a_pod_without_limits_has_some_room_and_no_more() -> None:
    assert capacity_bytes(pod("")) < 8 * 2**30
    assert capacity_bytes(pod("20Mi")) < 128 * MIB

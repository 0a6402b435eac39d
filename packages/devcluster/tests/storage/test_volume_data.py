"""Contents of volumes: copies are complete and independent, and a full volume is full."""

import pytest

from devcluster.testing.cluster import DevCluster, is_gone, volume_claim
from devcluster.testing.kube import Obj
from helpers.shells import PROCESSES, output, process_pods, shell

pytestmark = [pytest.mark.slow, process_pods]
ARGUMENTS = PROCESSES
SNAPSHOTS = "/apis/snapshot.storage.k8s.io/v1"


def disk(cluster: DevCluster, space: str, name: str, size: str = "80Mi", **spec: object) -> Obj:
    cluster.create(f"{space}/persistentvolumeclaims", volume_claim(name, size, **spec))
    return {"persistentVolumeClaim": {"claimName": name}}


def begin(cluster: DevCluster, space: str, script: str, mounts: dict[str, Obj]) -> str:
    """Create a pod that runs a script and stays. Return its path."""
    cluster.create(f"{space}/pods", shell("p", f"{script}; echo done; sleep 600", mounts))
    cluster.until(f"{space}/pods/p/log", lambda text: "done" in str(text))
    return f"{space}/pods/p"


def test_a_clone_of_a_volume_in_use_has_its_files_and_goes_its_own_way(
    cluster: DevCluster, space: str
) -> None:
    source = {"/data": disk(cluster, space, "d")}
    begin(cluster, space, "echo one > /data/f; head -c 20M /dev/urandom > /data/big", source)
    clone = {
        "/data": disk(cluster, space, "clone", dataSource={"kind": "PersistentVolumeClaim", "name": "d"})
    }
    assert output(cluster, space, shell("q", "cat /data/f; stat -c %s /data/big", clone)) == "one\n20971520\n"
    output(cluster, space, shell("r", "echo two > /data/f", clone))
    assert output(cluster, space, shell("s", "cat /data/f", source)) == "one\n"


def test_a_snapshot_keeps_what_was_there_and_is_restored_larger(cluster: DevCluster, space: str) -> None:
    source = {"/data": disk(cluster, space, "d")}
    begin(cluster, space, "echo before > /data/f", source)
    path = f"{SNAPSHOTS}/{space.removeprefix('/api/v1/')}/volumesnapshots"
    wish = {"source": {"persistentVolumeClaimName": "d"}}
    cluster.create(path, {"metadata": {"name": "s"}, "spec": wish})
    cluster.until(f"{path}/s", lambda o: bool(o.get("status", {}).get("readyToUse")))
    output(cluster, space, shell("after", "echo after > /data/f", source))
    kind = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    restored = {"/data": disk(cluster, space, "restored", "160Mi", dataSource=kind)}
    text = output(cluster, space, shell("r", "cat /data/f; df -m --output=size /data | tail -1", restored))
    word, size = text.split()
    assert word == "before"
    assert int(size) > 130
    copies = sorted(p.name for p in (cluster.state / "volumes").glob("snapshot-*"))
    assert len(copies) == 1
    cluster.call("DELETE", f"{path}/s")
    cluster.until(f"{path}/s", is_gone)
    cluster.until(f"{SNAPSHOTS}/volumesnapshotcontents", lambda o: not o["items"])
    assert not list((cluster.state / "volumes").glob("snapshot-*"))


def test_a_full_volume_refuses_to_be_written_and_has_room_again_afterwards(
    cluster: DevCluster, space: str
) -> None:
    mounts = {"/data": disk(cluster, space, "d")}
    script = "until head -c 1M /dev/zero 2>/dev/null > /data/f; do echo FULL; sleep 0.2; done; echo ROOM"
    match = {"claim": "d", "namespace": space.rsplit("/", 1)[1]}
    _, made = cluster.call("POST", "/_faults", {"volume": "full", "match": match})
    cluster.create(f"{space}/pods", shell("p", script, mounts))
    cluster.until(f"{space}/pods/p/log", lambda text: "FULL" in str(text))
    assert "ROOM" not in str(cluster.get(f"{space}/pods/p/log"))
    cluster.call("DELETE", f"/_faults/{made['id']}")
    cluster.until(f"{space}/pods/p/log", lambda text: "ROOM" in str(text))


def test_a_mounted_volume_becomes_full(cluster: DevCluster, space: str) -> None:
    mounts = {"/data": disk(cluster, space, "d")}
    script = "while head -c 1M /dev/zero 2>/dev/null > /data/f; do rm /data/f; echo ROOM; sleep 0.2; done; echo FULL"
    cluster.create(f"{space}/pods", shell("p", script, mounts))
    cluster.until(f"{space}/pods/p/log", lambda text: "ROOM" in str(text))
    cluster.call("POST", "/_faults", {"volume": "full", "match": {"claim": "d"}})
    cluster.until(f"{space}/pods/p/log", lambda text: "FULL" in str(text))


def test_the_data_of_a_deleted_claim_is_deleted(cluster: DevCluster, space: str) -> None:
    output(cluster, space, shell("p", "echo one > /data/f", {"/data": disk(cluster, space, "d")}))
    claim = cluster.get(f"{space}/persistentvolumeclaims/d")
    file = cluster.state / "volumes" / f"{claim['spec']['volumeName']}.img"
    assert file.exists()
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.call("DELETE", f"{space}/persistentvolumeclaims/d")
    cluster.until(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}", is_gone)
    assert not file.exists()


def test_a_second_mount_that_writes_beside_an_agent_that_holds_the_volume_loses_all_files(
    cluster: DevCluster, space: str
) -> None:
    mounts = {"/data": disk(cluster, space, "d", storageClassName="net-shared")}
    begin(cluster, space, "echo one > /data/f", mounts)
    _, made = cluster.call("POST", "/_faults", {"volume": "held", "match": {"claim": "d"}})
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/pods/p", is_gone)
    assert len(cluster.get("/apis/storage.k8s.io/v1/volumeattachments")["items"]) == 1
    read_only = {"/data": {"persistentVolumeClaim": {"claimName": "d", "readOnly": True}}}
    assert output(cluster, space, shell("q", "cat /data/f", read_only)) == "one\n"
    assert output(cluster, space, shell("r", "ls /data", mounts)) == ""
    [fault] = cluster.get("/_faults")["faults"]
    assert fault["hits"] == 1
    cluster.call("DELETE", f"/_faults/{made['id']}")


def test_a_claim_that_a_pod_brings_along_ends_with_it(cluster: DevCluster, space: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "80Mi"}}}
    mounts = {"/work": {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}}
    for name in ("p", "q"):
        assert output(cluster, space, shell(name, "ls /work; echo one > /work/f; ls /work", mounts)) == "f\n"
    claim = cluster.get(f"{space}/persistentvolumeclaims/p-v0")
    assert [owner["name"] for owner in claim["metadata"]["ownerReferences"]] == ["p"]
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/persistentvolumeclaims/p-v0", is_gone)
    cluster.until(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}", is_gone)
    assert cluster.get(f"{space}/persistentvolumeclaims/q-v0")["status"]["phase"] == "Bound"

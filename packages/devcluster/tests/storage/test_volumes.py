"""Volumes of devcluster's two drivers: growth, snapshots, attachments, and storage faults."""

from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, is_gone, is_ready, pod, running, volume_claim
from devcluster.testing.kube import Obj

NODES = """
nodes:
  - {name: one, cpu: 8, memory: 64Gi}
  - {name: two, cpu: 8, memory: 64Gi}
played: {start_seconds: 0.05, ready_seconds: 0.05, stop_seconds: 0.1}
lifecycle: {grace_seconds: 0.5, detach_seconds: 600}
"""
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SNAPSHOTS = "/apis/snapshot.storage.k8s.io/v1"
NOT_NOW = "rpc error: code = Unavailable desc = not now"


def claim(cluster: DevCluster, space: str, name: str, size: str = "1Gi", **spec: object) -> str:
    cluster.create(f"{space}/persistentvolumeclaims", volume_claim(name, size, **spec))
    return f"{space}/persistentvolumeclaims/{name}"


def bound(cluster: DevCluster, path: str) -> Obj:
    return dict(cluster.until(path, lambda o: o["status"].get("phase") == "Bound"))


def user(cluster: DevCluster, space: str, name: str, claim: str, node: str = "one") -> str:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    cluster.create(f"{space}/pods", pod(name, volumes=volumes, nodeSelector={"kubernetes.io/hostname": node}))
    return f"{space}/pods/{name}"


def told(cluster: DevCluster, space: str, reason: str, name: str) -> str:
    query = f"{space}/events?fieldSelector=involvedObject.name%3D{name}%2Creason%3D{reason}"
    return str(cluster.until(query, lambda o: o["items"])["items"][-1]["message"])


def fault(cluster: DevCluster, step: str, space: str, **more: object) -> str:
    """Switch a fault on for the claims of a namespace. Return the path that ends it."""
    spec = {"volume": step, "match": {"namespace": space.rsplit("/", 1)[1]}, **more}
    code, made = cluster.call("POST", "/_faults", spec)
    assert code < 300, made
    return f"/_faults/{made['id']}"


def grow(cluster: DevCluster, path: str, size: str) -> None:
    body = {"spec": {"resources": {"requests": {"storage": size}}}}
    code, refused = cluster.call("PATCH", path, body, "merge")
    assert code == 200, refused


def condition(found: Obj, kind: str) -> Obj:
    return next((c for c in found["status"].get("conditions", []) if c["type"] == kind), {})


def attachments(cluster: DevCluster, volume: str) -> list[Obj]:
    found = cluster.get(ATTACHMENTS)["items"]
    return [a for a in found if a["spec"]["source"]["persistentVolumeName"] == volume]


# --- Growth


def test_a_disk_of_a_node_grows_once_a_pod_has_it(cluster: DevCluster, space: str) -> None:
    path = claim(cluster, space, "d", storageClassName="local-fast")
    user(cluster, space, "p", "d")
    bound(cluster, path)
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/pods/p", is_gone)
    grow(cluster, path, "2Gi")
    waiting = cluster.until(path, lambda o: bool(condition(o, "FileSystemResizePending")))
    assert waiting["status"]["capacity"] == {"storage": "1Gi"}
    assert waiting["status"]["allocatedResources"] == {"storage": "2Gi"}
    assert waiting["status"]["allocatedResourceStatuses"] == {"storage": "NodeResizePending"}
    assert condition(waiting, "FileSystemResizePending")["message"] == (
        "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
    )
    user(cluster, space, "q", "d")
    grown = cluster.until(path, lambda o: o["status"]["capacity"] == {"storage": "2Gi"})
    assert "conditions" not in grown["status"]
    message = told(cluster, space, "FileSystemResizeSuccessful", "d")
    assert message == f'MountVolume.NodeExpandVolume succeeded for volume "{grown["spec"]["volumeName"]}" one'


def test_an_offline_class_grows_when_its_pod_was_started_again(cluster: DevCluster, space: str) -> None:
    body = {"metadata": {"name": "offline"}, "provisioner": "net.devcluster.local"}
    cluster.create(CLASSES, body | {"allowVolumeExpansion": True, "parameters": {"expansion": "offline"}})
    path = claim(cluster, space, "d", storageClassName="offline")
    cluster.until(user(cluster, space, "p", "d"), is_ready)
    grow(cluster, path, "2Gi")
    cluster.until(path, lambda o: bool(condition(o, "FileSystemResizePending")))
    assert cluster.get(path)["status"]["capacity"] == {"storage": "1Gi"}
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/pods/p", is_gone)
    user(cluster, space, "q", "d")
    cluster.until(path, lambda o: o["status"]["capacity"] == {"storage": "2Gi"})


def test_a_growth_that_cannot_be_is_recovered_from_by_a_lower_request(
    cluster: DevCluster, space: str
) -> None:
    body = {"metadata": {"name": "small"}, "provisioner": "net.devcluster.local"}
    cluster.create(CLASSES, body | {"allowVolumeExpansion": True, "parameters": {"maxSize": "3Gi"}})
    path = claim(cluster, space, "d", storageClassName="small")
    volume = bound(cluster, path)["spec"]["volumeName"]
    grow(cluster, path, "4Gi")
    failed = cluster.until(path, lambda o: bool(condition(o, "ControllerResizeError")))
    assert failed["status"]["allocatedResourceStatuses"] == {"storage": "ControllerResizeInfeasible"}
    why = "rpc error: code = OutOfRange desc = requested size 4Gi is more than the 3Gi that a volume can have"
    assert condition(failed, "ControllerResizeError")["message"] == f"failed to expand pvc with {why}"
    message = told(cluster, space, "VolumeResizeFailed", "d")
    assert message == f'resize volume "{volume}" by resizer "net.devcluster.local" failed: {why}'
    grow(cluster, path, "3Gi")
    done = cluster.until(path, lambda o: o["status"]["capacity"] == {"storage": "3Gi"})
    assert "allocatedResourceStatuses" not in done["status"]
    assert "conditions" not in done["status"]


def test_a_growth_that_fails_goes_on_once_storage_is_well(cluster: DevCluster, space: str) -> None:
    path = claim(cluster, space, "d")
    bound(cluster, path)
    on = fault(cluster, "expand", space, error=NOT_NOW)
    grow(cluster, path, "2Gi")
    failed = cluster.until(path, lambda o: bool(condition(o, "ControllerResizeError")))
    assert failed["status"]["allocatedResourceStatuses"] == {"storage": "ControllerResizeInProgress"}
    cluster.call("DELETE", on)
    cluster.until(path, lambda o: o["status"]["capacity"] == {"storage": "2Gi"})


# --- Attachments


def test_a_volume_is_attached_for_its_pod_and_detached_after_it(cluster: DevCluster, space: str) -> None:
    volume = bound(cluster, claim(cluster, space, "d"))["spec"]["volumeName"]
    cluster.until(user(cluster, space, "p", "d"), is_ready)
    (found,) = attachments(cluster, volume)
    assert found["status"] == {"attached": True}
    assert (found["spec"]["nodeName"], found["spec"]["attacher"]) == ("one", "net.devcluster.local")
    message = told(cluster, space, "SuccessfulAttachVolume", "p")
    assert message == f'AttachVolume.Attach succeeded for volume "{volume}" '
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{ATTACHMENTS}/{found['metadata']['name']}", is_gone)


def test_a_volume_of_one_writer_waits_until_the_other_node_has_let_go(
    cluster: DevCluster, space: str
) -> None:
    volume = bound(cluster, claim(cluster, space, "d"))["spec"]["volumeName"]
    cluster.until(user(cluster, space, "p", "d", "one"), is_ready)
    second = user(cluster, space, "q", "d", "two")
    message = told(cluster, space, "FailedAttachVolume", "q")
    assert message == f'Multi-Attach error for volume "{volume}" Volume is already used by pod(s) p'
    cluster.until(second, lambda o: "ContainerCreating" in str(o["status"].get("containerStatuses")))
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(second, is_ready)


def test_a_volume_of_many_writers_is_on_many_nodes(cluster: DevCluster, space: str) -> None:
    path = claim(cluster, space, "d", accessModes=["ReadWriteMany"])
    volume = bound(cluster, path)["spec"]["volumeName"]
    for name in ("one", "two"):
        cluster.until(user(cluster, space, name, "d", name), is_ready)
    assert {a["spec"]["nodeName"] for a in attachments(cluster, volume)} == {"one", "two"}


def test_an_attachment_that_hangs_says_so_and_goes_on_when_let(cluster: DevCluster, space: str) -> None:
    volume = bound(cluster, claim(cluster, space, "d"))["spec"]["volumeName"]
    on = fault(cluster, "attach", space)
    path = user(cluster, space, "p", "d")
    message = told(cluster, space, "FailedAttachVolume", "p")
    assert message == (
        f'AttachVolume.Attach failed for volume "{volume}" :'
        " rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    )
    assert cluster.get(path)["status"]["phase"] == "Pending"
    cluster.call("DELETE", on)
    cluster.until(path, is_ready)


def test_a_slow_attachment_only_takes_its_time(cluster: DevCluster, space: str) -> None:
    bound(cluster, claim(cluster, space, "d"))
    fault(cluster, "attach", space, seconds=1)
    since = cluster.get(f"{space}/pods")["metadata"]["resourceVersion"]
    user(cluster, space, "p", "d")
    events = cluster.watch_until(f"{space}/pods", since, lambda event: is_ready(event["object"]))
    told = [event["object"]["status"].get("containerStatuses") for event in events]
    assert "waiting" in next(statuses for statuses in told if statuses)[0]["state"]


def test_a_detachment_that_hangs_keeps_the_volume_from_the_next_node(cluster: DevCluster, space: str) -> None:
    volume = bound(cluster, claim(cluster, space, "d"))["spec"]["volumeName"]
    cluster.until(user(cluster, space, "p", "d", "one"), is_ready)
    on = fault(cluster, "detach", space)
    cluster.call("DELETE", f"{space}/pods/p")
    cluster.until(f"{space}/pods/p", is_gone)
    path = user(cluster, space, "q", "d", "two")
    message = told(cluster, space, "FailedAttachVolume", "q")
    assert message == (
        f'Multi-Attach error for volume "{volume}" Volume is already exclusively attached to one node and can\'t be'
        " attached to another"
    )
    (stuck,) = attachments(cluster, volume)
    stuck = cluster.until(
        f"{ATTACHMENTS}/{stuck['metadata']['name']}", lambda o: o["status"].get("detachError")
    )
    assert stuck["metadata"]["deletionTimestamp"]
    cluster.call("DELETE", on)
    cluster.until(path, is_ready)


def lose_node_under(cluster: DevCluster, space: str) -> str:
    """Lose a node under a pod and delete the pod by force. Return the path of one that wants its volume elsewhere."""
    bound(cluster, claim(cluster, space, "d"))
    cluster.until(user(cluster, space, "p", "d", "one"), is_ready)
    cluster.call("POST", "/_faults", {"node": "one", "state": "unreachable"})
    cluster.until("/api/v1/nodes/one", lambda o: "NodeStatusUnknown" in str(o["status"]["conditions"]))
    cluster.call("DELETE", f"{space}/pods/p", {"gracePeriodSeconds": 0})
    cluster.until(f"{space}/pods/p", is_gone)
    return user(cluster, space, "q", "d", "two")


def test_a_lost_node_keeps_its_volume_until_an_admin_says_that_it_is_off(
    cluster: DevCluster, space: str
) -> None:
    path = lose_node_under(cluster, space)
    assert "already exclusively attached" in told(cluster, space, "FailedAttachVolume", "q")
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    old = cluster.get("/api/v1/nodes/one")["spec"].get("taints", [])
    cluster.call("PATCH", "/api/v1/nodes/one", {"spec": {"taints": [*old, taint]}}, "merge")
    cluster.until(path, is_ready)
    cluster.call("PATCH", "/api/v1/nodes/one", {"spec": {"taints": None}}, "merge")


@pytest.mark.slow
def test_a_lost_node_loses_its_volume_after_a_while(tmp_path: Path) -> None:
    for own in running(tmp_path, "--pods", "played", nodes=NODES.replace("600", "3")):
        space = own.fresh()
        own.until(lose_node_under(own, space), is_ready)
        assert "already exclusively attached" in told(own, space, "FailedAttachVolume", "q")


# --- Storage faults


def test_provisioning_that_fails_is_told_and_tried_again(cluster: DevCluster, space: str) -> None:
    on = fault(
        cluster,
        "provision",
        space,
        error="rpc error: code = ResourceExhausted desc = no space left on device",
    )
    path = claim(cluster, space, "d")
    message = told(cluster, space, "ProvisioningFailed", "d")
    assert message == (
        'failed to provision volume with StorageClass "net-shared":'
        " rpc error: code = ResourceExhausted desc = no space left on device"
    )
    assert cluster.get(path)["status"] == {"phase": "Pending"}
    cluster.call("DELETE", on)
    bound(cluster, path)


@pytest.mark.parametrize(
    "spec",
    [
        {"volume": "explode"},
        {"volume": "mount", "match": {"pod": "p"}},
        {"volume": "mount", "seconds": "long"},
    ],
)
def test_faults_that_make_no_sense_are_refused(cluster: DevCluster, spec: Obj) -> None:
    code, refused = cluster.call("POST", "/_faults", spec)
    assert (code, refused["reason"]) == (400, "BadRequest")


# --- Snapshots and clones


def snapshot(cluster: DevCluster, space: str, name: str, claim: str, **spec: object) -> str:
    path = f"{SNAPSHOTS}/{space.removeprefix('/api/v1/')}/volumesnapshots"
    source = {"persistentVolumeClaimName": claim}
    cluster.create(path, {"metadata": {"name": name}, "spec": {"source": source, **spec}})
    return f"{path}/{name}"


def test_a_snapshot_is_bound_to_its_content_and_goes_with_it(cluster: DevCluster, space: str) -> None:
    volume = bound(cluster, claim(cluster, space, "d"))["spec"]["volumeName"]
    path = snapshot(cluster, space, "s", "d")
    found = cluster.until(path, lambda o: o.get("status", {}).get("readyToUse"))
    assert found["spec"]["volumeSnapshotClassName"] == "net-shared"
    assert found["status"]["restoreSize"] == "1Gi"
    name = found["status"]["boundVolumeSnapshotContentName"]
    content = cluster.get(f"{SNAPSHOTS}/volumesnapshotcontents/{name}")
    assert content["spec"]["source"] == {"volumeHandle": volume}
    assert content["spec"]["volumeSnapshotRef"]["uid"] == found["metadata"]["uid"]
    assert "is ready to use" in told(cluster, space, "SnapshotReady", "s")
    cluster.call("DELETE", path)
    cluster.until(path, is_gone)
    cluster.until(f"{SNAPSHOTS}/volumesnapshotcontents/{name}", is_gone)


def test_snapshots_are_printed_with_the_columns_of_their_resource(cluster: DevCluster, space: str) -> None:
    bound(cluster, claim(cluster, space, "d"))
    path = snapshot(cluster, space, "s", "d")
    cluster.until(path, lambda o: bool(o.get("status", {}).get("readyToUse")))
    as_table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    _, table = cluster.call("GET", path, headers=as_table)
    names = [c["name"] for c in table["columnDefinitions"]]
    assert names[:6] == [
        "Name",
        "ReadyToUse",
        "SourcePVC",
        "SourceSnapshotContent",
        "RestoreSize",
        "SnapshotClass",
    ]
    assert table["rows"][0]["cells"][:6] == ["s", True, "d", None, "1Gi", "net-shared"]


def test_a_class_without_snapshots_says_so(cluster: DevCluster, space: str) -> None:
    claim(cluster, space, "d", storageClassName="local-fast")
    user(cluster, space, "p", "d")
    bound(cluster, f"{space}/persistentvolumeclaims/d")
    path = snapshot(cluster, space, "s", "d")
    failed = cluster.until(path, lambda o: o.get("status", {}).get("error"))
    message = "Failed to set default snapshot class with error cannot find default snapshot class"
    assert failed["status"]["error"]["message"] == message
    assert failed["status"]["readyToUse"] is False


def test_a_snapshot_of_nothing_says_so(cluster: DevCluster, space: str) -> None:
    path = snapshot(cluster, space, "s", "absent", volumeSnapshotClassName="net-shared")
    failed = cluster.until(path, lambda o: o.get("status", {}).get("error"))
    assert failed["status"]["error"]["message"] == (
        "Failed to create snapshot content with error snapshot controller failed to update s on API server: cannot get"
        " claim from snapshot"
    )


def test_a_volume_is_made_from_a_snapshot_and_from_another_volume(cluster: DevCluster, space: str) -> None:
    bound(cluster, claim(cluster, space, "d"))
    path = snapshot(cluster, space, "s", "d")
    cluster.until(path, lambda o: o.get("status", {}).get("readyToUse"))
    from_snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    restored = bound(cluster, claim(cluster, space, "restored", "2Gi", dataSource=from_snapshot))
    assert restored["spec"]["dataSourceRef"] == from_snapshot
    from_claim = {"kind": "PersistentVolumeClaim", "name": "d"}
    cloned = bound(cluster, claim(cluster, space, "cloned", dataSourceRef=from_claim))
    assert cloned["spec"]["dataSource"] == {"apiGroup": None, **from_claim}


def test_a_source_that_does_not_fit_leaves_the_claim_waiting(cluster: DevCluster, space: str) -> None:
    bound(cluster, claim(cluster, space, "d", "2Gi"))
    source = {"kind": "PersistentVolumeClaim", "name": "d"}
    path = claim(cluster, space, "small", dataSource=source)
    assert told(cluster, space, "ProvisioningFailed", "small") == (
        'failed to provision volume with StorageClass "net-shared": error getting handle for DataSource Type'
        " PersistentVolumeClaim by Name d: error, new PVC request must be greater than or equal in size to the"
        " specified PVC data source, requested 1073741824 but source is 2147483648"
    )
    assert cluster.get(path)["status"] == {"phase": "Pending"}


def test_a_class_without_clones_leaves_the_claim_waiting(cluster: DevCluster, space: str) -> None:
    claim(cluster, space, "d", storageClassName="local-fast")
    user(cluster, space, "p", "d")
    source = {"kind": "PersistentVolumeClaim", "name": "d"}
    path = claim(cluster, space, "clone", storageClassName="local-fast", dataSource=source)
    user(cluster, space, "q", "clone")
    assert told(cluster, space, "ProvisioningFailed", "clone") == (
        'failed to provision volume with StorageClass "local-fast": CSI driver does not support clone operations:'
        " controller CLONE_VOLUME capability is not reported"
    )
    assert cluster.get(path)["status"] == {"phase": "Pending"}

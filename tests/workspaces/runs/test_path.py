"""The whole path of a run against a real HTTP Kubernetes API: up, down, and what happens in between.

Nothing runs in the background here: `drive` acts as worker and watcher, one look after the other.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.utils import timezone

from accounts.credentials import ssh_keys
from clusters.api import Api
from clusters.models import Cluster, Installation
from clusters.pods.ends import FINALIZER
from quotas import admission
from quotas.models import Claim
from storage.models import Volume
from tests.cast import Cast
from tests.shared.driving import claim_of, drive, in_phase, launched, told
from tests.shared.looking import look
from workloads.pods.wanted import Shared
from workspaces import enqueue
from workspaces.cluster.wanted import wanted_of
from workspaces.models import STEPS, Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db(transaction=True)]


def steps_told(workspace: Workspace) -> list[str]:
    rows = workspace.events.filter(run=workspace.run, level="info").exclude(step="").order_by("number")
    return list(rows.values_list("step", flat=True))


def objects(house: Cast, api: Api, kinds: tuple[str, ...]) -> list[str]:
    """Names of this installation's workspace objects."""
    ours = {"berth.dev/instance": str(Installation.current_id()), "app.kubernetes.io/managed-by": "berth"}
    return [
        f"{kind}/{body['metadata']['name']}"
        for kind in kinds
        for body in api.list(kind, namespace=house.demo.namespace, labels=ours)
        if "berth.dev/workspace" in body["metadata"]["labels"]
    ]


def no_claim_is_left() -> bool:
    return not Claim.objects.exclude(state="released").exists()


def let_troubles_last(workspace: Workspace) -> None:
    """Set the begin of its troubles long ago."""
    past = dict.fromkeys(workspace.troubles, "2020-01-01T00:00:00+00:00")
    Workspace.objects.filter(pk=workspace.pk).update(troubles=past)


OF_WORKSPACE = ("Pod", "Service", "Secret", "PersistentVolumeClaim")


def test_ten_steps_in_order_and_an_address_at_the_end(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    assert steps_told(workspace) == list(STEPS)
    assert workspace.host and workspace.node
    assert (workspace.jupyter_port, workspace.ssh_port) == (8888, 22)
    numbers = list(workspace.events.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


def test_looking_twice_changes_nothing(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))

    def state() -> tuple[object, list[str]]:
        row = Workspace.objects.values("changed_at", "last_event", "phase", "message_code").get(
            pk=workspace.pk
        )
        found = [body for kind in OF_WORKSPACE for body in api.list(kind, namespace=house.demo.namespace)]
        return row, [body["metadata"]["resourceVersion"] for body in found]

    before = state()
    for _ in range(3):
        enqueue.reconcile([workspace.pk])
        look(workspace.pk)
    assert state() == before


def test_stop_keeps_the_volumes_and_if_the_cluster_does_the_address_and_ends_the_pod(
    house: Cast, api: Api
) -> None:
    workspace = drive(launched(house, disk_mib=1024), in_phase("ready"))
    asked_at = timezone.now()
    assert lifecycle.stop(house.alice, workspace)
    workspace = drive(workspace, in_phase("stopped"))
    assert workspace.step_since > asked_at  # lists show since when it is stopped
    assert objects(house, api, ("Pod",)) == []
    assert len(objects(house, api, OF_WORKSPACE)) == 2  # Service and Secret
    assert len(api.list("PersistentVolumeClaim", namespace=house.demo.namespace)) == 2
    assert claim_of(workspace).state == "released"
    assert not lifecycle.stop(house.alice, workspace)
    house.cluster.keeps_addresses = False
    house.cluster.save()
    drive(workspace, lambda _row: objects(house, api, ("Service",)) == [])
    assert len(objects(house, api, ("Secret",))) == 1
    lifecycle.start(house.alice, workspace)
    workspace = drive(workspace, in_phase("ready"))
    assert workspace.host
    lifecycle.stop(house.alice, workspace)
    drive(workspace, in_phase("stopped"))
    assert objects(house, api, ("Service",)) == []


@pytest.mark.slow
def test_a_start_after_a_stop_is_a_new_run_with_ten_steps(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    first_run, address, host_key = workspace.run, workspace.host, workspace.secret.host_key_public
    lifecycle.stop(house.alice, workspace)
    workspace = drive(workspace, in_phase("stopped"))
    assert lifecycle.start(house.alice, workspace)
    workspace = drive(workspace, in_phase("ready"))
    assert workspace.run != first_run
    assert steps_told(workspace) == list(STEPS)
    assert (workspace.host, workspace.secret.host_key_public) == (address, host_key)


def test_a_stopped_waiting_workspace_leaves_the_queue_at_once(house: Cast) -> None:
    workspace = launched(house)
    lifecycle.stop(house.alice, workspace)
    workspace.refresh_from_db()
    assert (workspace.phase, workspace.desired) == ("stopped", "stopped")
    assert no_claim_is_left()


def test_delete_with_files_leaves_no_object_and_no_claim(house: Cast, api: Api) -> None:
    private: dict[str, Any] = {
        "env": {"A": "1"},
        "secret_env": {"KEY": "hush"},
        "repository": "https://git.example/a.git",
    }
    workspace = drive(launched(house, disk_mib=1024, **private), in_phase("ready"))
    assert lifecycle.delete(house.alice, workspace, delete_disk=True)
    deleted = drive(workspace, lambda w: w.deleted_at is not None)
    assert (deleted.env, deleted.repository, deleted.secret.clear_env()) == ({}, "", {})
    assert (deleted.secret.jupyter_token, deleted.secret.host_key) == ("", "")
    assert objects(house, api, OF_WORKSPACE) == []
    assert no_claim_is_left()
    assert told(workspace)[-1] == "deleted_with_files"
    (home,) = Volume.objects.filter(bin_until=None)
    assert (home.kind, home.mounts.count()) == ("home", 0)
    launched(house)  # the name is free again


@pytest.mark.slow
def test_delete_keeps_the_files_unless_told(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    lifecycle.delete(house.alice, workspace)
    drive(workspace, lambda w: w.deleted_at is not None)
    assert objects(house, api, ("Pod", "Service", "Secret")) == []
    (claim,) = api.list("PersistentVolumeClaim", namespace=house.demo.namespace)
    volume = api.get("PersistentVolume", None, claim["spec"]["volumeName"])
    assert volume is not None
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


@pytest.mark.slow
def test_a_namespace_deleted_by_hand_is_made_anew_with_the_same_volumes(house: Cast, api: Api) -> None:
    workspace = drive(launched(house, disk_mib=1024), in_phase("ready"))
    first_run = workspace.run
    volumes = {volume.object_name: volume.bound_to for volume in Volume.objects.all()}
    assert len(volumes) == 2
    api.delete("Namespace", None, house.demo.namespace)
    drive(workspace, lambda w: w.phase == "ready" and w.run != first_run)
    claims = api.list("PersistentVolumeClaim", namespace=house.demo.namespace)
    assert {claim["metadata"]["name"]: claim["spec"]["volumeName"] for claim in claims} == volumes


@pytest.mark.slow
def test_a_pod_that_vanished_without_an_end_keeps_its_units_until_an_admin_says_so(
    house: Cast, api: Api
) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    name = workspace.object_name
    pod = api.get("Pod", house.demo.namespace, name)
    assert pod is not None
    assert FINALIZER in pod["metadata"]["finalizers"]
    lifecycle.stop(house.alice, workspace)
    # Somebody removes our finalizer and deletes the pod by force while it runs.
    api.merge_patch("Pod", house.demo.namespace, name, {"metadata": {"finalizers": None}})
    api.delete("Pod", house.demo.namespace, name, grace_seconds=0)
    workspace = drive(workspace, lambda w: w.message_code == "end_unproven")
    assert claim_of(workspace).state == "admitted"
    admission.release(claim_of(workspace).pk, "end_confirmed")
    drive(workspace, in_phase("stopped"))


def test_a_missing_image_is_explained_and_fails_in_time(house: Cast, api: Api) -> None:
    house.image.reference = "berth.local/absent:1"
    house.image.save()
    workspace = drive(launched(house), lambda w: bool(w.troubles))
    assert workspace.message_code in {"image_not_found", "image_registry_unreachable"}
    assert workspace.phase == "starting"
    let_troubles_last(workspace)
    workspace = drive(workspace, in_phase("failed"))
    assert workspace.failure and workspace.failure["code"] == workspace.message_code
    assert told(workspace)[-1] == "given_up"
    assert objects(house, api, ("Pod",)) == []
    assert no_claim_is_left()


def test_a_pod_that_no_node_takes_goes_back_to_the_queue(house: Cast, api: Api) -> None:
    house.cluster.nodes.update(labels={})  # Berth's rows now have nodes that the cluster does not have
    house.pool.node_labels = {}
    house.pool.save()
    workspace = launched(house)
    house.pool.node_labels = {"nvidia.com/gpu.product": "absent"}
    admission.admit(house.pool.pk)
    house.pool.save()
    workspace = drive(workspace, lambda w: bool(w.troubles))
    first_run = workspace.run
    let_troubles_last(workspace)
    workspace = drive(workspace, lambda w: w.run != first_run)
    claim = claim_of(workspace)
    assert (claim.state, claim.attempt) == ("waiting", 1)
    assert claim.not_before is not None
    assert workspace.phase == "waiting"


@pytest.mark.slow
def test_a_run_whose_node_is_out_of_use_waits_in_the_queue_and_says_why(house: Cast, api: Api) -> None:
    workspace = launched(house)
    admission.admit(house.pool.pk)
    first = claim_of(workspace)
    house.cluster.nodes.filter(name=first.node).update(gpus_out_code="gpu_uvm_missing")
    workspace = drive(workspace, lambda w: w.run != first.pk)
    claim = claim_of(workspace)
    assert (claim.state, claim.reason_code) == ("waiting", "gpu_uvm_missing")
    assert objects(house, api, ("Pod",)) == []
    house.cluster.nodes.update(gpus_out_code="")
    Claim.objects.update(not_before=None)  # a moment later
    drive(workspace, in_phase("ready"))


def test_a_foreign_namespace_is_refused_never_adopted(house: Cast, api: Api) -> None:
    metadata = {"name": house.demo.namespace, "labels": {"x": "y"}}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    workspace = drive(launched(house), in_phase("failed"))
    assert workspace.failure and workspace.failure["code"] == "namespace_foreign"
    namespace = api.get("Namespace", None, house.demo.namespace)
    assert namespace is not None
    assert "app.kubernetes.io/managed-by" not in namespace["metadata"]["labels"]


def test_new_ssh_keys_reach_a_running_workspace(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    private = Ed25519PrivateKey.generate()
    key = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    ssh_keys.add(house.alice, "laptop", key)
    workspace.refresh_from_db()
    assert workspace.dirty_since is not None
    look(workspace.pk)
    claim = claim_of(workspace)
    assert key.split()[1] in wanted_of(workspace, claim, Shared()).secret.authorized_keys[0]
    secret = api.get("Secret", house.demo.namespace, workspace.object_name)
    assert secret is not None
    assert key.split()[1] in base64.b64decode(secret["data"]["authorized_keys"]).decode()


@pytest.mark.slow
def test_several_forms_of_one_trouble_share_one_clock(house: Cast, api: Api) -> None:
    house.image.reference = "berth.local/absent:1"
    house.image.save()
    workspace = drive(launched(house), lambda w: bool(w.troubles))
    earlier = {"container_keeps_crashing": "2020-01-01T00:00:00+00:00"}
    Workspace.objects.filter(pk=workspace.pk).update(troubles=earlier)
    drive(workspace, in_phase("failed"))
    assert told(workspace).count(workspace.message_code) <= 2


# --- Addresses by the cluster's exposure setting


@pytest.mark.parametrize("node_address", ["", pytest.param("gpu.example.org", marks=pytest.mark.slow)])
def test_ssh_at_a_port_of_the_nodes(house: Cast, api: Api, node_address: str) -> None:
    Cluster.objects.update(exposure=Cluster.Exposure.NODE_PORT, node_address=node_address)
    workspace = drive(launched(house), in_phase("ready"))
    [service] = api.list("Service", namespace=house.demo.namespace)
    ports = {port["name"]: port["nodePort"] for port in service["spec"]["ports"]}
    [pod] = api.list("Pod", namespace=house.demo.namespace)
    assert service["spec"]["type"] == "NodePort"
    assert workspace.host == (node_address or pod["status"]["hostIP"])
    assert {"ssh": workspace.ssh_port} == ports  # JupyterLab is at no port of the nodes
    assert 30000 <= ports["ssh"] <= 32767
    assert (workspace.jupyter_host, workspace.jupyter_port) == (pod["status"]["podIP"], 8888)


@pytest.mark.slow
def test_the_address_of_a_run_follows_the_clusters_exposure(house: Cast, api: Api) -> None:
    workspace = drive(launched(house), in_phase("ready"))
    balanced = workspace.host
    Cluster.objects.update(exposure=Cluster.Exposure.NODE_PORT)
    moved = drive(workspace, lambda row: row.host != balanced)
    assert moved.phase == "ready"
    assert moved.ssh_port is not None
    assert moved.ssh_port >= 30000
    Cluster.objects.update(exposure=Cluster.Exposure.PORTAL)
    assert moved.jupyter_host
    inside = drive(moved, lambda row: row.ssh_port == 22)
    assert not inside.jupyter_host
    [service] = api.list("Service", namespace=house.demo.namespace)
    assert inside.host == service["spec"]["clusterIP"]
    assert not any("nodePort" in port for port in service["spec"]["ports"])

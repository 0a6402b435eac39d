"""Repair of Berth's objects after changes by hand, while the run goes on: on a cluster in memory."""

from __future__ import annotations

import pytest

from accounts.notices.models import Notice
from storage.models import Volume
from tests.workspaces.play import Play
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]


def key_of(play: Play, kind: str) -> tuple[str, str, str]:
    metadata = play.api.of(kind)[0]["metadata"]
    return kind, metadata["namespace"], metadata["name"]


@pytest.mark.parametrize("kind", ["Service", "Pod", "PersistentVolumeClaim"])
def test_labels_are_restored_and_nothing_ends(play: Play, kind: str) -> None:
    run = play.begin_ready().run
    body = play.api.of(kind)[0]
    labels = body["metadata"].pop("labels")
    for _ in range(3):
        play.look()
    assert play.api.of(kind)[0]["metadata"]["labels"].items() >= labels.items()
    assert (play.row.phase, play.row.run, play.row.troubles) == ("ready", run, {})


def test_the_pods_finalizer_is_restored(play: Play) -> None:
    play.begin_ready()
    play.pod()["metadata"]["finalizers"] = ["example.com/others"]
    play.look()
    assert play.pod()["metadata"]["finalizers"] == ["example.com/others", "berth.dev/end-seen"]


def test_a_secret_deleted_by_hand_is_made_again_at_the_next_start(play: Play) -> None:
    """Nobody watches Secrets, and a running pod has its own copy: a look does not read them."""
    play.begin_ready()
    play.api.objects.pop(key_of(play, "Secret"))
    play.stop()
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    assert play.api.of("Secret")


def test_a_secret_deleted_by_hand_is_made_again_when_the_node_misses_it(play: Play) -> None:
    play.pass_over_the_queue()
    play.until(lambda _row: bool(play.api.of("Pod")))
    kind, namespace, name = key_of(play, "Secret")
    play.api.objects.pop((kind, namespace, name))
    mount_fails(play, f'MountVolume.SetUp failed for volume "secret" : secret "{name}" not found')
    play.look()
    assert play.api.of("Secret")


def mount_fails(play: Play, message: str) -> None:
    body = play.pod()["metadata"]
    play.api.objects["Event", body["namespace"], "missed"] = {
        "kind": "Event",
        "metadata": {"name": "missed", "namespace": body["namespace"], "uid": "e1"},
        "involvedObject": {
            "uid": body["uid"], "kind": "Pod", "name": body["name"], "namespace": body["namespace"]
        },
        "type": "Warning",
        "reason": "FailedMount",
        "message": message,
    }  # fmt: skip


def test_a_node_that_formats_a_volume_with_data_alarms_its_owner_and_all_admins_once(play: Play) -> None:
    play.until(lambda row: bool(play.api.of("Pod")) and row.step == "image")
    Volume.objects.update(bound_to="pvc-1")
    mount_fails(play, 'Disk "/dev/rbd0" appears to be unformatted, attempting to format as type: "ext4"')
    play.look()
    play.look()
    assert play.told("volume_formatting") == 1
    alarms = Notice.objects.filter(subject="volume")
    assert {notice.user.username for notice in alarms} == {"alice", "admin"}
    assert [notice.data["code"] for notice in alarms] == ["volume_formatting"] * 2


def test_a_service_deleted_by_hand_is_made_again_at_once(play: Play) -> None:
    run = play.begin_ready().run
    play.api.objects.pop(key_of(play, "Service"))
    play.until(lambda row: bool(play.api.of("Service")) and row.message_code == "ready")
    assert (play.row.phase, play.row.run) == ("ready", run)


def test_files_without_labels_are_deleted_with_the_workspace(play_with_disk: Play) -> None:
    play = play_with_disk
    play.begin_ready()
    play.stop()
    for claim in play.api.of("PersistentVolumeClaim"):
        claim["metadata"].pop("labels")
    lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
    play.until(lambda row: row.deleted_at is not None)
    assert play.kinds_kept() == ["home"]


def test_a_start_script_deleted_by_hand_is_made_again_at_the_next_start(play: Play) -> None:
    play.begin_ready()
    play.stop()
    play.api.objects.pop(key_of(play, "ConfigMap"))
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    assert play.api.of("ConfigMap")


@pytest.mark.parametrize("step", ["scheduled", "image", "started"])
def test_a_start_whose_pod_somebody_deletes_begins_anew(play: Play, step: str) -> None:
    play.until(lambda row: bool(play.api.of("Pod")) and row.step == step)
    body = play.pod()["metadata"]
    play.api.delete("Pod", body["namespace"], body["name"])
    play.until_phase("ready")
    assert play.pod()["metadata"]["uid"] != body["uid"]
    assert (play.told("interrupted"), play.told("ended_before_ready")) == (1, 0)

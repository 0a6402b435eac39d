"""Repair of Berth's objects after changes by hand, while the run goes on: on a cluster in memory."""

from __future__ import annotations

import pytest

from tests.workspaces.play import Play
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]


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


def test_a_service_deleted_by_hand_is_made_again_with_its_secret(play: Play) -> None:
    run = play.begin_ready().run
    for body in play.api.of("Service", "Secret"):
        del play.api.objects[body["kind"], body["metadata"]["namespace"], body["metadata"]["name"]]
    play.look()
    assert len(play.api.of("Service", "Secret")) == 2
    play.until_phase("ready")
    assert play.row.run == run


def test_files_without_labels_are_deleted_with_the_workspace(play: Play) -> None:
    play.begin_ready()
    play.stop()
    play.api.of("PersistentVolumeClaim")[0]["metadata"].pop("labels")
    lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
    play.until(lambda row: row.deleted_at is not None)
    assert play.api.of("PersistentVolumeClaim") == []


def test_start_files_deleted_while_nothing_runs_are_made_again(play: Play) -> None:
    play.begin_ready()
    play.stop()
    files = play.api.of("ConfigMap")[0]["metadata"]
    del play.api.objects["ConfigMap", files["namespace"], files["name"]]
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    assert play.api.of("ConfigMap")


def test_a_start_whose_pod_somebody_deletes_begins_anew(play: Play) -> None:
    play.until(lambda row: row.step in ("started", "mounts"))
    body = play.pod()["metadata"]
    play.api.delete("Pod", body["namespace"], body["name"])
    play.until_phase("ready")
    assert (play.told("interrupted"), play.told("ended_before_ready")) == (1, 0)

"""Repair of Berth's objects after changes by hand, while the run goes on: on a cluster in memory."""

from __future__ import annotations

import pytest

from tests.workspaces.play import Play
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]


@pytest.mark.parametrize("kind", ["StatefulSet", "Service", "Secret", "Pod", "PersistentVolumeClaim"])
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


def test_a_set_deleted_without_its_pod_is_created_again_around_it(play: Play) -> None:
    run = play.begin_ready().run
    stateful_set, pod = play.api.of("StatefulSet")[0], play.pod()["metadata"]["uid"]
    del play.api.objects[
        "StatefulSet", stateful_set["metadata"]["namespace"], stateful_set["metadata"]["name"]
    ]
    play.pod()["metadata"].pop("ownerReferences")
    play.api.changed(stateful_set)
    play.look()
    assert [body["spec"]["replicas"] for body in play.api.of("StatefulSet")] == [1]
    assert (play.row.phase, play.row.run, play.pod()["metadata"]["uid"]) == ("ready", run, pod)


def test_files_without_labels_are_deleted_with_the_workspace(play: Play) -> None:
    play.begin_ready()
    play.stop()
    play.api.of("PersistentVolumeClaim")[0]["metadata"].pop("labels")
    lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
    play.until(lambda row: row.deleted_at is not None)
    assert play.api.of("PersistentVolumeClaim") == []


def test_a_start_script_deleted_before_it_ran_is_created_again(play: Play) -> None:
    play.until(lambda _: any(body["spec"]["replicas"] for body in play.api.of("StatefulSet")))
    script = play.api.of("ConfigMap")[0]["metadata"]
    del play.api.objects["ConfigMap", script["namespace"], script["name"]]
    play.until_phase("ready")
    assert play.api.of("ConfigMap")


@pytest.mark.parametrize(
    ("kind", "propagation"),
    [("Pod", "Background"), ("StatefulSet", "Foreground"), ("StatefulSet", "Background")],
)
def test_a_start_whose_pod_somebody_deletes_begins_anew(play: Play, kind: str, propagation: str) -> None:
    play.until(lambda row: row.step in ("started", "mounts"))
    body = play.api.of(kind)[0]["metadata"]
    play.api.delete(kind, body["namespace"], body["name"], propagation=propagation)
    play.until_phase("ready")
    assert (play.told("interrupted"), play.told("ended_before_ready")) == (1, 0)

"""Behaviour of a run when people and faults interfere, on a cluster in memory, one step after the other."""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from uuid import uuid4

import pytest

from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.models import UnknownCause
from quotas import admission
from quotas.models import Quota
from tests.workspaces.play import Play
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]


# --- the proof of an end


def test_stop_right_after_a_node_rejected_the_pod_needs_no_admin(play: Play) -> None:
    """The rejected pod never ran: its end is proven when it is released, and no admin has to confirm it."""
    play.until(lambda _: bool(play.api.of("Pod")))
    play.api.end_pod(play.pod(), "OutOfcpu")
    play.stop()
    assert play.told("end_unproven") == 0


def test_another_pod_does_not_prove_the_end_of_a_pod_that_vanished(play: Play) -> None:
    play.begin_ready()
    first = deepcopy(play.pod())
    play.pod()["metadata"]["finalizers"] = []
    play.api.mark_deleted(play.pod())  # by force: the process may still run
    play.api.put({**first, "metadata": {**first["metadata"], "uid": "by-hand"}})
    play.until(lambda row: row.message_code == "end_unproven")
    assert play.api.of("Pod") == []
    assert play.claim().state == "admitted"
    run = play.row.run
    admission.confirm_end(play.cast.admin, play.claim())
    assert play.until_phase("ready").run != run
    assert play.told("end_unproven") == 1


def test_an_unproven_end_is_reported_once_although_the_cluster_goes_away(play: Play) -> None:
    play.begin_ready()
    lifecycle.stop(play.cast.alice, play.row)
    play.pod()["metadata"]["finalizers"] = []
    play.api.mark_deleted(play.pod())
    play.until(lambda row: row.message_code == "end_unproven")
    play.fail_calls(ClusterUnavailable("away"))
    assert play.look().message_code == "cluster_unavailable"
    play.answer_calls()
    assert play.look().message_code == "end_unproven"
    assert play.told("end_unproven") == 1


# --- the next run


def test_a_start_that_limits_no_longer_allow_gives_its_units_back(play: Play) -> None:
    play.begin_ready()
    ended = play.claim()
    lifecycle.stop(play.cast.alice, play.row)
    lifecycle.start(play.cast.alice, play.row)
    Quota.objects.all().delete()
    row = play.until_phase("failed")
    ended.refresh_from_db()
    assert ended.state == "released"
    assert (row.desired, row.failure and row.failure["code"]) == ("stopped", "refused_again")


def test_a_run_that_is_interrupted_again_and_again_fails(play: Play) -> None:
    for _ in range(4):
        play.begin_ready()
        play.api.end_pod(play.pod(), "Evicted")
        play.look()
    row = play.until_phase("failed")
    assert row.failure and row.failure["code"] == "interrupted_often"
    assert play.told("interrupted") == 4


def test_a_pod_of_an_earlier_run_is_deleted_first(play: Play) -> None:
    play.begin_ready()
    pod = play.pod()
    pod["metadata"]["labels"] = {**pod["metadata"]["labels"], "berth.dev/run": str(uuid4())}
    Workspace.objects.update(pod_ended=True, pod_uid="", ready_at=None, phase="starting", step="container")
    play.until_phase("ready")
    assert play.pod()["metadata"]["uid"] != pod["metadata"]["uid"]
    assert play.told("given_up") == play.told("interrupted") == 0


def test_a_late_pod_of_a_stopped_workspace_is_deleted(play: Play) -> None:
    play.begin_ready()
    late = deepcopy(play.pod())
    play.stop()
    play.api.put(late)
    play.until(lambda _: not play.api.of("Pod"))
    assert play.row.phase == "stopped"


def of_a_stateful_set(play: Play) -> None:
    """Give the run the shape of the time when each workspace had a StatefulSet."""
    pod = play.pod()
    metadata = pod["metadata"]
    del play.api.objects["Pod", metadata["namespace"], metadata["name"]]
    owner = {"kind": "StatefulSet", "name": metadata["name"], "uid": "set"}
    around = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": "set"}
    play.api.put({"kind": "StatefulSet", "metadata": around})
    metadata |= {"name": f"{metadata['name']}-0", "ownerReferences": [owner]}
    play.api.put(pod)


def test_a_pod_of_a_stateful_set_runs_on_and_goes_with_its_set(play: Play) -> None:
    run = play.begin_ready().run
    of_a_stateful_set(play)
    play.look()
    assert (play.row.phase, play.row.run, len(play.api.of("Pod"))) == ("ready", run, 1)
    play.stop()
    assert play.api.of("Pod", "StatefulSet") == []
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    assert play.pod()["metadata"]["name"] == play.row.object_name


# --- other requests meanwhile


def test_a_deletion_at_the_end_of_a_stop_deletes_the_files_too(play: Play) -> None:
    play.begin_ready()
    lifecycle.stop(play.cast.alice, play.row)
    play.look()
    play.api.settle()

    def delete_at_the_first_call() -> None:
        play.answer_calls()
        lifecycle.delete(play.cast.alice, play.row, delete_disk=True)

    play.api.before_call = delete_at_the_first_call
    play.until(lambda row: row.deleted_at is not None)
    assert play.told("deleted_with_files") == 1
    assert play.api.of("PersistentVolumeClaim") == []


def test_files_can_be_added_to_a_deletion_under_way(play: Play) -> None:
    play.begin_ready()
    assert lifecycle.delete(play.cast.alice, play.row)
    play.look()
    assert lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
    assert not lifecycle.delete(play.cast.alice, play.row)
    play.until(lambda row: row.deleted_at is not None)
    assert play.api.of("PersistentVolumeClaim") == []
    assert not lifecycle.delete(play.cast.alice, play.row, delete_disk=True)


# --- the cluster refuses


@pytest.mark.parametrize("error", [ClusterUnavailable("away"), ClusterRefused(403, "Forbidden", "no right")])
def test_a_claim_is_held_until_the_end_is_proven_whichever_call_fails(play: Play, error: Exception) -> None:
    play.begin_ready()
    lifecycle.stop(play.cast.alice, play.row)
    for from_call in range(8):
        play.fail_calls(error, from_call=from_call)
        play.look()
        alive = any(pod["status"]["phase"] == "Running" for pod in play.api.of("Pod"))
        assert play.claim().state == "admitted" or not alive
        play.answer_calls()
        play.api.step()
    play.until_phase("stopped")
    assert play.claim().state == "released"


def test_a_refusal_during_a_stop_is_reported_once_while_it_lasts(play: Play) -> None:
    play.begin_ready()
    lifecycle.stop(play.cast.alice, play.row)
    before = play.row.last_event
    play.fail_calls(ClusterRefused(403, "Forbidden", "berth may not do this"))
    for _ in range(3):
        assert play.look().message_code != "stopping"
    assert play.row.last_event == before + 1
    play.answer_calls()
    assert play.look().message_code == "stopping"


def test_a_refusal_does_not_end_a_run(play: Play) -> None:
    play.begin_ready()
    run = play.row.run
    play.pod()["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    namespace = play.api.of("Namespace")[0]["metadata"]
    ours, namespace["labels"] = namespace["labels"], {}
    row = play.look()
    assert (row.phase, row.ending, row.message_code) == ("ready", "", "namespace_foreign")
    namespace["labels"] = ours
    play.pod()["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    row = play.look()
    assert (row.phase, row.run, row.message_code) == ("ready", run, "ready")


# --- volumes


def home(play: Play) -> dict[str, Any]:
    return play.api.of("PersistentVolumeClaim")[0]


def test_a_volume_is_kept_before_a_pod_can_write_to_it(play: Play) -> None:
    play.until(lambda _: bool(play.api.of("Pod")))
    (volume,) = play.api.of("PersistentVolume")
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert play.row.volumes == {home(play)["metadata"]["name"]: volume["metadata"]["name"]}


def test_a_home_deleted_by_hand_alerts_at_once_and_ends_nothing(play: Play) -> None:
    play.begin_ready()
    home(play)["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    play.api.mark_deleted(home(play))
    play.look()
    row = play.look()
    assert (row.phase, row.ending, row.message_code) == ("ready", "", "volume_deleted")
    assert [event.level for event in row.events.filter(code="volume_deleted")] == ["error"]


def test_a_home_deleted_while_stopped_alerts_once_and_comes_back_with_its_data(play: Play) -> None:
    (volume,) = stopped_and_home_deleted(play)
    for _ in range(3):
        play.look()
    assert play.told("volume_deleted") == 1
    lifecycle.start(play.cast.alice, play.row)
    play.begin_ready()
    assert len(play.api.of("PersistentVolume")) == 1
    assert home(play)["spec"]["volumeName"] == volume["metadata"]["name"]


@pytest.mark.parametrize("lost", [True, False], ids=["deleted", "used elsewhere"])
def test_no_empty_home_replaces_a_lost_one(play: Play, lost: bool) -> None:
    (volume,) = stopped_and_home_deleted(play)
    if lost:
        play.api.mark_deleted(volume)
    else:
        volume["spec"]["claimRef"]["name"] = "another"
    lifecycle.start(play.cast.alice, play.row)
    row = play.until_phase("failed")
    assert row.failure and row.failure["code"] == "volume_gone"
    assert play.api.of("PersistentVolumeClaim") == []
    assert play.claim().state == "released"


def stopped_and_home_deleted(play: Play) -> list[dict[str, Any]]:
    play.begin_ready()
    play.stop()
    play.api.mark_deleted(home(play))
    return play.api.of("PersistentVolume")


# --- unexplained messages


def fail_pull(play: Play, message: str) -> Workspace:
    waiting = {"reason": "ErrImagePull", "message": f"failed: {message}"}
    statuses = [{"name": "workspace", "state": {"waiting": waiting}}]
    play.pod()["status"] = {"phase": "Pending", "containerStatuses": statuses}
    return play.look()


def test_each_kind_of_unexplained_message_is_reported_and_counted_once(play: Play) -> None:
    play.until(lambda row: row.step == "image")
    for message in ("the flux capacitor lacks 7 g", "plutonium is out", "the flux capacitor lacks 9 g"):
        fail_pull(play, message)
    counted = {row.text.removeprefix("failed: "): row.count for row in UnknownCause.objects.all()}
    assert play.told("unknown") == 2
    assert counted == {"the flux capacitor lacks 7 g": 1, "plutonium is out": 1}


def test_a_message_that_changes_at_every_look_adds_few_events(play: Play) -> None:
    play.until(lambda row: row.step == "image")
    for letter in "abcdefghijklmnop":
        fail_pull(play, f"no flux in capacitor {letter}{letter}")
    assert play.told("unknown") <= 11
    assert len(play.row.troubles) <= 11


# --- clocks


def test_a_long_mount_takes_no_time_from_a_pull_that_fails_after_it(play: Play) -> None:
    play.until(lambda row: row.step == "image")
    Workspace.objects.update(troubles={"volume_slow": ""})
    row = fail_pull(play, 'failed to pull image "x": not found')
    assert row.ending == ""
    assert [bool(since) for since in row.troubles.values()] == [False, True]

"""Behaviour of a run when people and faults interfere, on a cluster in memory, one step after the other."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.labels import RUN
from clusters.models import UnknownCause
from quotas import admission
from quotas.models import Claim, Quota
from storage.models import Volume
from tests.shared.clients import browser
from tests.workspaces.play import Play
from workspaces.api.representation import problem_json
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = [pytest.mark.django_db]
WAYS_IN = ("Service", "Secret")


# --- the proof of an end


def test_a_start_whose_pod_a_node_rejected_goes_back_to_the_queue_at_once(play: Play) -> None:
    """The rejected pod never ran: its end is proven, and no admin has to confirm it."""
    play.until(lambda _: bool(play.api.of("Pod")))
    first = play.row.run
    play.api.step()
    play.api.end_pod(play.pod(), "UnexpectedAdmissionError")
    assert play.look().ending == "requeue"
    row = play.until(lambda row: row.run != first)
    assert (play.claim().state, play.claim().attempt, play.api.of("Pod")) == ("waiting", 1, [])
    assert (row.phase, play.told("end_unproven"), play.told("ended_before_ready")) == ("waiting", 0, 0)
    Claim.objects.update(not_before=None)  # a moment later
    play.until_phase("ready")


def test_a_stop_right_after_a_node_rejected_the_pod_needs_no_admin(play: Play) -> None:
    play.until(lambda _: bool(play.api.of("Pod")))
    play.api.step()
    play.api.end_pod(play.pod(), "OutOfcpu")
    play.look()
    play.stop()
    assert play.told("end_unproven") == 0


def test_another_pod_does_not_prove_the_end_of_a_pod_that_vanished(play: Play) -> None:
    play.begin_ready()
    first = deepcopy(play.pod())
    play.pod()["metadata"]["finalizers"] = []
    play.api.mark_deleted(play.pod())  # by force: the process may still run
    of_another = {**first["metadata"], "uid": "another", "labels": {**first["metadata"]["labels"]}}
    play.api.put({**first, "metadata": of_another})  # somebody makes the next one by hand, at once
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


def earlier_pod(play: Play) -> dict[str, Any]:
    """Bring it up, and let its pod be one of an earlier run, whose name the pod of this run needs."""
    play.begin_ready()
    metadata = play.pod()["metadata"]
    metadata["labels"] = {**metadata["labels"], RUN: str(uuid4())}
    Workspace.objects.update(pod_ended=True, pod_uid="", ready_at=None, phase="starting", step="container")
    return metadata


def test_a_pod_of_an_earlier_run_is_deleted_first(play: Play) -> None:
    earlier = earlier_pod(play)
    play.until_phase("ready")
    assert play.pod()["metadata"]["uid"] != earlier["uid"]
    assert play.told("given_up") == play.told("interrupted") == 0


@pytest.mark.parametrize("heard", [True, False], ids=["heard of", "not heard of"])
def test_a_start_waits_while_an_earlier_pod_is_still_going(play: Play, heard: bool) -> None:
    earlier = earlier_pod(play)
    of = play.mirror.of
    if not heard:
        play.mirror.of = lambda kind, *a, **k: [] if kind == "Pod" else of(kind, *a, **k)  # type: ignore[method-assign]
    for _ in range(5):
        row = play.look()
        assert [pod["metadata"]["uid"] for pod in play.api.of("Pod")] == [earlier["uid"]]
        assert (row.phase, row.step, row.ending, row.troubles) == ("starting", "container", "", {})
    if not heard:
        del play.mirror.of
    play.until_phase("ready")
    assert [pod["metadata"]["uid"] != earlier["uid"] for pod in play.api.of("Pod")] == [True]


def test_a_creation_whose_answer_was_lost_ends_in_one_pod(play: Play) -> None:
    create = play.api.create
    lost: list[Any] = []

    def create_and_lose_the_answer(body: dict[str, Any]) -> dict[str, Any]:
        answer = create(body)
        if body["kind"] == "Pod" and not lost:
            lost.append(answer["metadata"]["uid"])
            raise ClusterUnavailable("no answer in time")
        return answer

    play.api.create = create_and_lose_the_answer  # type: ignore[method-assign]
    play.until_phase("ready")
    assert [pod["metadata"]["uid"] for pod in play.api.of("Pod")] == lost
    assert play.told("interrupted") == 0


def test_a_creation_whose_answer_was_lost_and_that_nobody_heard_of_is_seen_by_its_name(play: Play) -> None:
    of, create = play.mirror.of, play.api.create

    def create_and_lose_the_answer(body: dict[str, Any]) -> dict[str, Any]:
        answer = create(body)
        if body["kind"] == "Pod":
            raise ClusterUnavailable("no answer in time")
        return answer

    play.mirror.of = lambda kind, *a, **k: [] if kind == "Pod" else of(kind, *a, **k)  # type: ignore[method-assign]
    play.api.create = create_and_lose_the_answer  # type: ignore[method-assign]
    play.until(lambda _: bool(play.api.of("Pod")))
    uid = play.pod()["metadata"]["uid"]
    lifecycle.stop(play.cast.alice, play.row)
    play.look()
    assert play.claim().state == "admitted"  # it may run
    del play.mirror.of
    play.api.create = create  # type: ignore[method-assign]
    play.until_phase("stopped")
    assert (play.api.of("Pod"), play.row.pod_uid) == ([], uid)


def test_late_objects_of_a_stopped_workspace_are_deleted(play: Play) -> None:
    play.begin_ready()
    late = deepcopy(play.pod())
    play.stop()
    late["metadata"]["uid"] = "late"
    play.api.put(late)
    play.until(lambda _: not play.api.of("Pod"))
    assert play.row.phase == "stopped"


def test_late_ways_in_of_a_deleted_workspace_are_deleted(play: Play) -> None:
    play.begin_ready()
    late = [deepcopy(body) for body in play.api.of(*WAYS_IN)]
    lifecycle.delete(play.cast.alice, play.row)
    play.until(lambda row: row.deleted_at is not None)
    assert play.api.of(*WAYS_IN) == []
    for body in late:
        play.api.put(body)
    play.look()
    assert play.api.of(*WAYS_IN) == []


# --- runs of the time when each workspace had a StatefulSet


def with_a_set(play: Play) -> dict[str, Any]:
    """Bring it up, and give its run the shape it had then. Return the pod."""
    play.begin_ready()
    pod = play.pod()
    del play.api.objects["Pod", pod["metadata"]["namespace"], pod["metadata"]["name"]]
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    owner = {"kind": "StatefulSet", "name": name, "uid": "set-1"}
    pod["metadata"] |= {"name": f"{name}-0", "ownerReferences": [owner]}
    metadata = {"name": name, "namespace": namespace, "uid": "set-1", "labels": pod["metadata"]["labels"]}
    play.api.put({"kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 1}})
    play.api.put(pod)
    return pod


def test_a_run_with_a_set_goes_on(play: Play) -> None:
    pod = with_a_set(play)
    row = play.row
    for _ in range(3):
        play.look()
        play.api.step()
    assert (play.row.phase, play.row.run, play.row.last_event) == ("ready", row.run, row.last_event)
    assert [body["metadata"]["uid"] for body in play.api.of("Pod")] == [pod["metadata"]["uid"]]
    assert play.api.of("StatefulSet")


def test_a_stop_deletes_set_and_pod_and_the_next_start_has_the_new_shape(play: Play) -> None:
    pod = with_a_set(play)
    lifecycle.stop(play.cast.alice, play.row)
    play.look()
    assert play.api.of("StatefulSet") == []  # it would make the pod again
    assert play.claim().state == "admitted"  # the pod still runs
    play.until_phase("stopped")
    assert (play.api.of("Pod"), play.claim().state) == ([], "released")
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    assert play.pod()["metadata"]["name"] == play.row.object_name != pod["metadata"]["name"]
    assert "ownerReferences" not in play.pod()["metadata"]
    assert play.api.of("StatefulSet") == []


def test_a_restart_of_a_run_with_a_set_has_no_two_pods_at_any_moment(play: Play) -> None:
    pod = with_a_set(play)
    run = play.row.run
    lifecycle.restart(play.cast.alice, play.row)

    def one_step() -> None:
        assert len(play.api.of("Pod")) <= 1
        play.api.step()

    row = play.until(lambda row: row.phase == "ready" and row.run != run, between=one_step)
    assert row.object_name == play.pod()["metadata"]["name"] != pod["metadata"]["name"]


# --- other requests meanwhile


def test_a_deletion_at_the_end_of_a_stop_deletes_the_files_too(play_with_disk: Play) -> None:
    play = play_with_disk
    play.begin_ready()
    lifecycle.stop(play.cast.alice, play.row)
    play.look()
    play.api.step()

    def delete_at_the_last_call() -> None:
        play.answer_calls()
        assert play.pod()["status"]["phase"] == "Failed"  # the finalizer is about to go
        lifecycle.delete(play.cast.alice, play.row, delete_disk=True)

    play.api.before_call = delete_at_the_last_call
    play.until(lambda row: row.deleted_at is not None)
    assert play.told("deleted_with_files") == 1
    assert play.kinds_kept() == ["home"]


def test_files_can_be_added_to_a_deletion_under_way(play_with_disk: Play) -> None:
    play = play_with_disk
    play.begin_ready()
    assert lifecycle.delete(play.cast.alice, play.row)
    play.look()
    assert lifecycle.delete(play.cast.alice, play.row, delete_disk=True)
    assert not lifecycle.delete(play.cast.alice, play.row)
    play.until(lambda row: row.deleted_at is not None)
    assert play.kinds_kept() == ["home"]
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
    kept = Volume.objects.get()
    assert (kept.object_name, kept.bound_to) == (home(play)["metadata"]["name"], volume["metadata"]["name"])


def test_a_home_deleted_by_hand_alerts_at_once_and_ends_nothing(play: Play) -> None:
    play.begin_ready()
    home(play)["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    play.api.mark_deleted(home(play))
    play.look()
    row = play.look()
    assert (row.phase, row.ending, row.message_code) == ("ready", "", "volume_deleted")
    assert play.told("volume_deleted") == 1
    assert Notice.objects.filter(user=play.cast.alice.user, kind=Kind.HEALTH).count() == 1


def test_a_home_deleted_while_stopped_comes_back_with_its_data(play: Play) -> None:
    (volume,) = stopped_and_home_deleted(play)
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


def test_a_start_with_a_problem_says_what_it_is_until_when_and_notifies_once(play: Play) -> None:
    play.until(lambda row: row.step == "image")
    assert problem_json(play.row) is None
    fail_pull(play, "manifest unknown: not found")
    row = fail_pull(play, "manifest unknown: not found")
    problem = problem_json(row)
    assert problem and (row.phase, problem["code"]) == ("starting", "image_not_found")
    assert row.trouble_since and row.gives_up_at == row.trouble_since + timedelta(minutes=5)
    notice = Notice.objects.get(kind=Kind.FAILED)
    assert notice.data["code"] == "image_not_found"
    page = browser(play.cast.alice).get(f"/workspaces/{row.pk}/").content.decode()
    assert 'data-code="image_not_found"' in page and "status-starting has-problem" in page
    assert "has-problem" in browser(play.cast.alice).get("/").content.decode()
    play.pod()["status"] = {"phase": "Pending"}
    row = play.begin_ready()
    assert (problem_json(row), row.trouble_since, row.gives_up_at) == (None, None, None)


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

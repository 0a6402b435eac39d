"""Six scripted ends: the record is whole after everything in the cluster is gone, as a page and by API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from clusters.models import Node
from monitoring import enqueue
from monitoring.health import judging
from monitoring.models import OomKill, PostMortem, XidEvent
from monitoring.post_mortems import filling, opening
from tests.cast import Cast
from tests.monitoring.post_mortems.ends import (
    GPU,
    NODE,
    JobPlay,
    WorkspacePlay,
    event,
    filled,
    forget_the_cluster,
    held_by,
    logged,
    watched_node,
)
from tests.shared.clients import script
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db

Json = dict[str, Any]
Read = Callable[[UUID | None], Json]


@pytest.fixture
def read(cast: Cast) -> Read:
    """Return a function that reads a record by the API, as its owner."""

    def read(run: UUID | None) -> Json:
        answer = script(cast.alice).get(f"/api/v1/post-mortems/{run}/")
        assert answer.status_code == 200
        body: Json = answer.json()
        return body

    return read


def stays(read: Read, api: Any, record: PostMortem) -> Json:
    """Return the record's JSON, which is the same before and after everything in the cluster is gone."""
    before = read(record.pk)
    forget_the_cluster(api)
    assert read(record.pk) == before
    assert before["is_complete"]
    return before


def test_a_job_that_ran_out_of_memory(cast: Cast, read: Read) -> None:
    watched_node(cast)
    play = JobPlay(cast)
    logged(cast, "job", play.job.pk, play.attempt.run, "epoch 1", "loading the whole data set")
    event(cast, play.pod, "BackOff", "Back-off restarting failed container")
    job = play.end(137, "OOMKilled")
    body = stays(read, play.api, filled(play.attempt.run))
    assert (body["happened"], body["verdict"]["code"], body["exit_code"]) == ("failed", "out_of_memory", 137)
    assert [one["text"] for one in body["log"]] == ["epoch 1", "loading the whole data set"]
    assert [one["reason"] for one in body["events"]] == ["BackOff"]
    assert body["ends"][0]["reason"] == "OOMKilled"
    shown = script(cast.alice).get(f"/api/v1/jobs/{job.pk}/").json()
    assert shown["failure"]["post_mortem"] == shown["attempts"][0]["post_mortem"] == body["id"]


def test_a_job_whose_child_the_kernel_ended(cast: Cast, read: Read) -> None:
    watched_node(cast)
    play = JobPlay(cast)
    now = timezone.now()
    for container, kills in (("", 2), ("c1", 2)):
        OomKill.objects.create(
            cluster=cast.cluster, node=NODE, pod_uid=play.pod["metadata"]["uid"], container=container, kills=kills,
            first_at=now, last_at=now,
        )  # fmt: skip
    play.end(1)
    body = stays(read, play.api, filled(play.attempt.run))
    assert (body["verdict"]["code"], body["oom_kills"]["kills"]) == ("child_out_of_memory", 2)


def test_a_job_that_exits_with_1_is_explained_by_its_own_last_lines(cast: Cast, read: Read) -> None:
    watched_node(cast)
    play = JobPlay(cast)
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"
    logged(cast, "job", play.job.pk, play.attempt.run, "step 7", error)
    play.end(1)
    body = stays(read, play.api, filled(play.attempt.run))
    assert (body["verdict"]["code"], body["verdict"]["from_log"]) == ("gpu_out_of_memory", True)
    assert body["exit_code"] == 1
    assert {one["code"] for one in body["missing"]} == {"events", "gpus"}


def test_exit_1_without_words_is_told_as_that(cast: Cast, read: Read) -> None:
    play = JobPlay(cast)
    play.end(1)
    body = stays(read, play.api, filled(play.attempt.run))
    assert body["verdict"]["code"] == "program_exit"
    assert {"log", "agent"} <= {one["code"] for one in body["missing"]}


def test_an_evicted_workspace(cast: Cast, read: Read) -> None:
    watched_node(cast)
    play = WorkspacePlay(cast)
    run, pod = play.row.run, play.pod
    logged(cast, "workspace", play.id, run or play.id, "[I] kernel started")
    event(cast, pod, "Evicted", 'Usage of EmptyDir volume "tmp" exceeds the limit "10Gi".')
    pod["status"] = {
        "phase": "Failed", "reason": "Evicted",
        "message": "Usage of EmptyDir volume \"tmp\" exceeds the limit \"10Gi\". ",
    }  # fmt: skip
    play.api.put(pod)
    play.until(
        lambda row: (row.run == run and row.ending == "" and row.phase == "starting") or row.run != run
    )
    body = stays(read, play.api, filled(run))
    assert (body["happened"], body["verdict"]["code"]) == ("evicted", "temporary_disk_full")
    assert body["verdict"]["hint"]
    assert body["workspace"] == str(play.id)
    assert body["volumes"][0]["kind"] == "home"
    assert body["node_then"]["ready"] is True
    events = script(cast.alice).get(f"/api/v1/workspaces/{play.id}/events/?limit=500").json()["results"]
    assert str(run) in {one["post_mortem"] for one in events}


def test_xid_79(cast: Cast, read: Read) -> None:
    gpu = watched_node(cast)
    play = JobPlay(cast)
    held_by(gpu, play.pod)
    XidEvent.objects.create(cluster=cast.cluster, node=NODE, gpu=GPU, xid=79, at=timezone.now())
    judging.judge(cast.cluster.pk, NODE)
    play.end(1)
    first = PostMortem.objects.earliest("ended_at")
    body = stays(read, play.api, filled(first.pk))
    assert (body["happened"], body["verdict"]["code"]) == ("interrupted", "gpu_lost")
    assert [(one["xid"], one["gpu"]) for one in body["xids"]] == [(79, GPU)]
    assert body["gpus"] == [GPU]
    assert "gpu_lost" in {one["code"] for one in body["troubles"]}
    assert body["gpu_facts"][0]["health"]["temperature_celsius"] == 61


def test_an_xid_of_somebody_elses_gpu_is_not_in_the_record(cast: Cast, read: Read) -> None:
    gpu = watched_node(cast)
    play = JobPlay(cast)
    held_by(gpu, play.pod)
    XidEvent.objects.create(cluster=cast.cluster, node=NODE, gpu="GPU-1", xid=79, at=timezone.now())
    play.end(1)
    assert read(filled(play.attempt.run).pk)["xids"] == []


def test_a_lost_node(cast: Cast, read: Read) -> None:
    watched_node(cast)
    play = WorkspacePlay(cast)
    run, pod = play.row.run, play.pod
    silent = {
        "Ready": {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting"}
    }
    Node.objects.filter(name=NODE).update(ready=False, conditions=silent)
    judging.judge(cast.cluster.pk, NODE)
    play.api.end_pod(pod, "")
    pod["status"]["conditions"] = [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node lost",
        }
    ]
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    play.api.put(pod)
    play.ends(run)
    body = stays(read, play.api, filled(run))
    assert (body["happened"], body["verdict"]["code"]) == ("interrupted", "node_lost")
    assert body["node_then"]["conditions"][0]["status"] == "Unknown"
    assert body["node"] == NODE


def test_a_deleted_namespace(cast: Cast, read: Read) -> None:
    play = WorkspacePlay(cast)
    run = play.row.run
    (namespace,) = play.api.of("Namespace")
    namespace["metadata"]["finalizers"] = ["kubernetes"]
    play.api.mark_deleted(namespace)
    for pod in play.api.of("Pod"):
        play.api.mark_deleted(pod)
    play.ends(run)
    body = stays(read, play.api, filled(run))
    assert (body["happened"], body["verdict"]["code"]) == ("interrupted", "namespace_deleted")


def test_a_record_is_opened_with_the_end_and_filled_until_the_log_is_whole(cast: Cast) -> None:
    play = JobPlay(cast)
    run = play.attempt.run
    stream = logged(cast, "job", play.job.pk, run, "one")
    type(stream).objects.update(ended_at=None)
    play.end(1)
    record = PostMortem.objects.get(pk=run)
    assert (record.gathered_at, record.due_at is not None) == (None, True)
    record = filled(run, age=timedelta(seconds=4))
    assert record.due_at is not None
    assert "log_end" in record.facts["missing"]
    type(stream).objects.update(ended_at=timezone.now())
    record = filled(run, age=timedelta(seconds=21))
    assert (record.due_at, "log_end" in record.facts["missing"]) == (None, False)


def test_its_filling_is_enqueued_once_until_it_begins_or_is_lost(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued: list[bool] = []
    monkeypatch.setattr(enqueue, "fill_post_mortems", lambda: enqueued.append(True))
    record = make_post_mortem(make_workspace(cast, cast.bob), due_at=timezone.now())
    filling.want()
    filling.want()
    assert len(enqueued) == 1
    PostMortem.objects.update(queued_at=timezone.now() - 2 * filling.LOST_AFTER)
    filling.want()
    assert len(enqueued) == 2
    filled(record.pk, age=timedelta(seconds=4))
    assert PostMortem.objects.get().queued_at is None


def test_a_fault_of_the_record_ends_no_transaction_of_an_end(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_record: PostMortem) -> None:
        PostMortem.objects.raw("SELECT no_such_column")[0]

    monkeypatch.setattr(opening, "_open", fails)
    play = JobPlay(cast)
    job = play.end(1)
    assert (job.phase, PostMortem.objects.count()) == ("failed", 0)


def test_what_a_person_asked_for_leaves_no_record(cast: Cast) -> None:
    play = WorkspacePlay(cast)
    lifecycle.stop(cast.alice, play.row)
    play.until(lambda row: row.phase == "stopped")
    assert PostMortem.objects.count() == 0

"""Runs that end badly in a cluster in memory, whose watch tells Berth of every change, until all of it is gone."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.utils import timezone

from clusters.models import Gpu, Node
from clusters.watch.watching import Changed
from jobs.cluster.look import look
from jobs.models import Attempt, Job
from monitoring.models import AgentState, OomKill, PostMortem, SeenPod, Trouble, XidEvent
from monitoring.post_mortems import filling, pods
from quotas import admission
from quotas.models import Claim
from storage.models import Mount
from tests.cast import Cast
from tests.shared.driving_jobs import RUNS, submitted
from tests.shared.log_rows import make_stream, write
from tests.shared.looking import PlayedMirror
from tests.shared.looking import look as look_at_workspace
from tests.shared.played.jobs import PlayedJobs
from tests.shared.played_api import PlayedApi
from workloads.logs.models import LogChunk, LogStream
from workloads.pods.wanted import Shared
from workloads.sizes.sizing import SizeAsked
from workspaces import enqueue
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Workspace

NODE = "gpu-1"
GPU = "GPU-00000000-0000-4000-8000-000000000000"


def tells(cast: Cast, api: Any) -> None:
    """Let the watch tell Berth of every change in the cluster, as `clusters.signals.objects_changed` does."""

    def changed(body: dict[str, Any]) -> None:
        is_gone = (
            body["kind"],
            body["metadata"].get("namespace", ""),
            body["metadata"]["name"],
        ) not in api.objects
        step = Changed("DELETED" if is_gone else "MODIFIED", deepcopy(body))
        pods.on_objects_changed(cluster=cast.cluster, changes=[step])

    api.changed = changed


class JobPlay:
    """A job of alice's on the node, step by step."""

    def __init__(self, cast: Cast, **changes: Any) -> None:
        self.cast, self.api = cast, PlayedJobs()
        tells(cast, self.api)
        self.mirror = PlayedMirror(self.api)
        self.job = submitted(cast, ends=RUNS, **({"retries": 0} | changes))
        self.goes_on(8)

    def goes_on(self, rounds: int = 4) -> Job:
        for _ in range(rounds):
            admission.admit(self.cast.pool.pk)
            self.job = Job.objects.select_related("secret").get(pk=self.job.pk)
            look(self.job, self.mirror, Shared([self.job.pk]))
            self.api.step()
        return Job.objects.get(pk=self.job.pk)

    @property
    def pod(self) -> dict[str, Any]:
        return self.api.of("Pod")[0]

    @property
    def attempt(self) -> Attempt:
        return Attempt.objects.filter(part__job=self.job).latest("pk")

    def end(self, exit_code: int, reason: str = "Error") -> Job:
        pod = self.pod
        ended = {"exitCode": exit_code, "reason": reason, "finishedAt": _now()}
        pod["status"] = {
            "phase": "Failed",
            "containerStatuses": [{"name": "job", "state": {"terminated": ended}}],
        }
        self.api.put(pod)
        return self.goes_on()


class WorkspacePlay:
    """A ready workspace of alice's on the node, one look after the other."""

    def __init__(self, cast: Cast) -> None:
        self.cast, self.api = cast, PlayedApi()
        tells(cast, self.api)
        self.mirror = PlayedMirror(self.api)
        size = SizeAsked(flavor="a100-1")
        self.id = launch(cast.alice, LaunchSpec(tenant="demo", name="exp", image="jupyter", size=size)).pk
        self.until(lambda row: row.phase == "ready")

    @property
    def row(self) -> Workspace:
        return Workspace.objects.get(pk=self.id)

    @property
    def pod(self) -> dict[str, Any]:
        return self.api.of("Pod")[0]

    def until(self, done: Callable[[Workspace], bool]) -> Workspace:
        """Look until `done`. The cluster takes all its steps between two looks."""
        for _ in range(30):
            if Claim.objects.filter(state=Claim.State.WAITING).exists():
                admission.admit(self.cast.pool.pk)
            enqueue.reconcile([self.id])
            look_at_workspace(self.id, self.mirror)
            if done(row := self.row):
                return row
            self.api.settle()
        pytest.fail(f"still {self.row.phase} {self.row.ending}: {self.row.message_code}")

    def ends(self, run: UUID | None) -> Workspace:
        """Look until the run is over, or is being taken down."""
        return self.until(lambda row: row.run != run or bool(row.ending))


def event(cast: Cast, pod: dict[str, Any], reason: str, message: str, kind: str = "Warning") -> None:
    """Let the cluster tell an event about a pod."""
    of = pod["metadata"]
    about = {"kind": "Pod", "namespace": of["namespace"], "name": of["name"], "uid": of["uid"]}
    body = {
        "kind": "Event", "metadata": {"name": f"{of['name']}.{reason}", "namespace": of["namespace"], "uid": reason},
        "involvedObject": about, "type": kind, "reason": reason, "message": message, "lastTimestamp": _now(),
        "source": {"component": "kubelet"},
    }  # fmt: skip
    pods.on_objects_changed(cluster=cast.cluster, changes=[Changed("ADDED", body)])


def _now() -> str:
    return timezone.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def watched_node(cast: Cast, **agent: Any) -> Gpu:
    """Return the first GPU of the node, whose agent reports."""
    now = timezone.now()
    AgentState.objects.create(
        cluster=cast.cluster, node=NODE, agent="a", taken_at=now, seen_at=now, driver_version="570.86",
        **({"counts_oom_kills": True} | agent),
    )  # fmt: skip
    return Gpu.objects.create(
        cluster=cast.cluster, node=NODE, uuid=GPU, index=0, name="NVIDIA A100", seen_at=now,
        sample={"uuid": GPU, "state": "ok", "temperature_celsius": 61},
    )  # fmt: skip


def held_by(gpu: Gpu, pod: dict[str, Any]) -> None:
    of = pod["metadata"]
    gpu.held_by = [
        {"namespace": of["namespace"], "pod": of["name"], "container": "workspace", "uid": of["uid"]}
    ]
    gpu.save()


def logged(cast: Cast, kind: str, holder: UUID, run: UUID, *texts: str) -> LogStream:
    stream = make_stream(cast.demo, holder, kind, run=run)
    write(stream, texts)
    LogStream.objects.filter(pk=stream.pk).update(ended_at=timezone.now())
    return stream


def filled(run: UUID | None, *, age: timedelta = timedelta(seconds=70)) -> PostMortem:
    """Return the record as it is after its looks."""
    assert run is not None
    PostMortem.objects.filter(pk=run).update(due_at=timezone.now())
    then = timezone.now() + age
    with patch.object(timezone, "now", lambda: then):
        assert filling.fill_due()
    return PostMortem.objects.get(pk=run)


def forget_the_cluster(api: Any) -> None:
    """Let nothing be left that a record could be made from: objects, reports, logs, mounts, and the node itself."""
    api.objects.clear()
    for model in (SeenPod, OomKill, XidEvent, Trouble, AgentState, Gpu, LogChunk, LogStream, Mount):
        model.objects.all().delete()
    Node.objects.all().delete()

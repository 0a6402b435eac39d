"""Nodes with GPUs as last reported, the workspaces on them, and short ways to make something fail."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.access import Actor
from clusters.models import Gpu, Node, PodUsage
from monitoring.health import judging
from monitoring.models import AgentState, Trouble, XidEvent
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from vitals.models import Process
from workspaces.models import Event, Workspace

NODE = "gpu-1"


class Ward:
    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.cluster = cast.cluster
        hears_for_long()
        Node.objects.filter(name=NODE).update(system={"bootID": "boot-1"})
        AgentState.objects.create(
            cluster=cast.cluster, node=NODE, agent="a", taken_at=timezone.now(), seen_at=timezone.now()
        )
        for index in range(4):
            Gpu.objects.create(
                cluster=cast.cluster,
                node=NODE,
                index=index,
                uuid=f"GPU-{index}",
                seen_at=timezone.now(),
                sample={"uuid": f"GPU-{index}", "state": "ok"},
            )

    def on_gpu(self, index: int, actor: Actor, *, name: str = "exp", **changes: Any) -> Workspace:
        """Return a ready workspace whose pod has the GPU."""
        workspace = make_workspace(self.cast, actor, name=name, **changes)
        pod = {"namespace": workspace.tenant.namespace, "name": f"{workspace.object_name}-0"}
        PodUsage.objects.create(
            cluster=self.cluster, uid=str(workspace.pk), node=NODE, run=workspace.run,
            requests={"nvidia.com/gpu": 1}, **pod,
        )  # fmt: skip
        gpu = self.gpu(index)
        gpu.held_by.append({"namespace": pod["namespace"], "pod": pod["name"], "container": "workspace"})
        gpu.save()
        return workspace

    def gpu(self, index: int) -> Gpu:
        return Gpu.objects.get(cluster=self.cluster, uuid=f"GPU-{index}")

    def sample(self, index: int, **told: Any) -> None:
        gpu = self.gpu(index)
        gpu.sample |= told
        gpu.seen_at = timezone.now()
        gpu.save()
        self.judge()

    def xid(self, index: int | None, number: int, at: datetime | None = None) -> None:
        uuid = "" if index is None else f"GPU-{index}"
        XidEvent.objects.create(
            cluster=self.cluster, node=NODE, gpu=uuid, xid=number, at=at or timezone.now()
        )
        self.judge()

    def agent(self, *codes: str) -> None:
        troubles = [{"code": code, "detail": "as it said"} for code in codes]
        AgentState.objects.filter(node=NODE).update(troubles=troubles)
        self.judge()

    def node(self, **values: Any) -> None:
        Node.objects.filter(cluster=self.cluster, name=NODE).update(**values)
        self.judge()

    def judge(self) -> None:
        judging.judge(self.cluster.pk, NODE)


def hears_for_long() -> None:
    """Pretend that Berth could hear agents for a day."""
    now = timezone.now()
    Process.objects.create(part="web", host="h", pid=1, seen_at=now, since=now - timedelta(days=1))


def open_codes() -> list[str]:
    return sorted(Trouble.objects.filter(ended_at=None).values_list("code", flat=True))


def story(workspace: Workspace) -> list[tuple[str, str]]:
    """Return (code, level) of the workspace's events after it was ready."""
    last = Event.objects.filter(workspace=workspace, code="ready").get().number
    later = Event.objects.filter(workspace=workspace, number__gt=last).order_by("number")
    return [(event.code, str(event.level)) for event in later]

"""Whole path of a workspace on a cluster in memory, one look after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from clusters.models import Node
from quotas import admission
from quotas.models import Claim
from quotas.sharing import Portion
from storage.models import Volume
from tests.cast import GIB, Cast
from tests.shared.looking import PlayedMirror, look
from tests.shared.played_api import PlayedApi
from tests.shared.stage import GPU
from tests.workspaces.specs import spec
from workspaces import enqueue
from workspaces.launch.launch import launch
from workspaces.models import Workspace
from workspaces.runs import lifecycle


def leave_one_gpu(cast: Cast, node: str) -> None:
    """Leave only the GPU that a workspace has on this node."""
    Node.objects.exclude(name=node).delete()
    Node.objects.update(allocatable={"cpu": 64_000, "memory": 512 * GIB, "pods": 110, GPU: 1})


def request_of_carol(cast: Cast) -> Claim:
    """Let carol, of the second tenant, request a GPU. Return her claim after the admission pass."""
    claim = admission.request(
        tenant=cast.second,
        user=cast.carol.user,
        pool=cast.pool,
        portion=Portion(1),
        cpu_millicores=1000,
        memory_mib=1024,
        holder_kind=Claim.Holder.JOB,
        holder_id=uuid4(),
    )
    admission.admit(cast.pool.pk)
    return claim


class Play:
    """A workspace of alice's on a simulated cluster."""

    def __init__(self, cast: Cast, api: PlayedApi, name: str = "exp", **wanted: Any) -> None:
        self.cast, self.api, self.mirror = cast, api, PlayedMirror(api)
        self.id = launch(cast.alice, spec(name=name, **wanted)).pk

    @property
    def row(self) -> Workspace:
        return Workspace.objects.get(pk=self.id)

    def look(self) -> Workspace:
        enqueue.reconcile([self.id])
        look(self.id, self.mirror)
        return self.row

    def until(
        self, done: Callable[[Workspace], bool], *, between: Callable[[], object] | None = None
    ) -> Workspace:
        """Look until `done`. Between two looks the cluster makes one step, or `between` is called."""
        for _ in range(30):
            self.pass_over_the_queue()
            if done(row := self.look()):
                return row
            (between or self.api.step)()
        row = self.row
        pytest.fail(f"still {row.phase} {row.ending} at {row.step}: {row.message_code}")

    def until_phase(self, phase: str) -> Workspace:
        return self.until(lambda row: row.phase == phase and not row.ending)

    def stop(self) -> Workspace:
        lifecycle.stop(self.cast.alice, self.row)
        return self.until_phase("stopped")

    def begin_ready(self) -> Workspace:
        """Bring the workspace up with the fewest looks, for tests that begin with a ready one."""
        return self.until(lambda row: row.phase == "ready" and not row.ending, between=self.api.settle)

    def pass_over_the_queue(self) -> None:
        """Run an admission pass if a claim waits."""
        if Claim.objects.filter(pool=self.cast.pool, state=Claim.State.WAITING).exists():
            admission.admit(self.cast.pool.pk)

    def told(self, code: str) -> int:
        return self.row.events.filter(code=code).count()

    def kinds_kept(self) -> list[str]:
        """Kinds of the volumes that have a PVC."""
        claims = [body["metadata"]["name"] for body in self.api.of("PersistentVolumeClaim")]
        return sorted(volume.kind for volume in Volume.objects.all() if volume.object_name in claims)

    def pod(self) -> dict[str, Any]:
        return self.api.of("Pod")[0]

    def claim(self) -> Claim:
        """Claim of the current run."""
        assert self.row.run is not None
        return Claim.objects.get(pk=self.row.run)

    def fail_calls(self, error: Exception, *, from_call: int = 0) -> None:
        calls: list[None] = []

        def call() -> None:
            calls.append(None)
            if len(calls) > from_call:
                raise error

        self.api.before_call = call

    def answer_calls(self) -> None:
        self.api.before_call = lambda: None

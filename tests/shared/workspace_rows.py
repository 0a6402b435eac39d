"""Workspaces in every phase, as rows: views and API need no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from accounts.access import Actor
from clusters.models import Node
from quotas.models import Claim, Flavor, Pool, Quota
from tests.cast import GIB, Cast
from workspaces.launch import keys
from workspaces.models import STEPS, Desired, Event, Phase, Step, Workspace, WorkspaceSecret
from workspaces.state.live import write_events
from workspaces.state.story import add_event

DONE_CODES = {
    Step.REQUEST: "requested",
    Step.ADMISSION: "admitted",
    Step.READY: "ready",
} | {step: f"{step}_done" for step in STEPS[2:-1]}
DATA: dict[str, Any] = {"name": "exp", "size": "a100-1", "pool": "A100", "node": "gpu-1", "host": "127.0.1.5"}


def make_workspace(
    cast: Cast, actor: Actor, phase: Phase = Phase.READY, *, name: str = "exp-1", **changes: Any
) -> Workspace:
    """Make a workspace of the actor in demo (carol's in second), with events that fit its phase."""
    tenant = cast.second if actor == cast.carol else cast.demo
    now = timezone.now()
    reached = {Phase.WAITING: 1, Phase.STARTING: 5, Phase.FAILED: 5}.get(phase, 9)
    workspace = Workspace.objects.create(
        tenant=tenant,
        owner=actor.user,
        name=name,
        image=cast.image,
        pool=cast.pool,
        flavor=cast.flavor,
        units=1,
        cpu_millicores=4000,
        memory_mib=16_384,
        env={"GREETING": "hello"},
        phase=phase,
        desired=Desired.RUNNING if phase in (Phase.WAITING, Phase.STARTING, Phase.READY) else Desired.STOPPED,
        step=STEPS[reached],
        step_since=now - timedelta(seconds=3),
        message_code="ready" if phase == Phase.READY else f"doing_{STEPS[reached]}",
    )
    keys.make_secret(workspace, {"TOKEN": "s3cret-value"})
    claim = make_claim(workspace, phase)
    workspace.run = claim.pk
    tell_steps(workspace, STEPS[:reached])
    if phase == Phase.READY:
        add_event(workspace, DONE_CODES[Step.READY], step=Step.READY, **DATA)
    settle(workspace, phase)
    for field, value in changes.items():
        setattr(workspace, field, value)
    workspace.save()
    write_events(workspace)
    return workspace


def make_many(cast: Cast, actor: Actor, count: int, *phases: Phase, begin: int = 0, **changes: Any) -> None:
    """Make `count` workspaces, in these phases by turns, named by number. Only the first of each phase has events."""
    phases = phases or tuple(Phase)
    firsts: list[tuple[Workspace, WorkspaceSecret, Claim]] = []
    for phase, number in zip(phases, range(begin, begin + count), strict=False):
        row = make_workspace(cast, actor, phase, name=f"exp-{number}", **changes)
        firsts.append((row, row.secret, Claim.objects.get(holder_id=row.pk)))
    rows, secrets, claims = list[Workspace](), list[WorkspaceSecret](), list[Claim]()
    for number in range(len(phases), count):
        first, its_secret, its_claim = firsts[number % len(phases)]
        row, secret, claim = copy(first), copy(its_secret), copy(its_claim)
        row.pk, secret.pk, claim.pk = uuid4(), None, uuid4()
        row.name, row.run = f"exp-{begin + number}", claim.pk
        secret.workspace_id = claim.holder_id = row.pk
        rows.append(row)
        secrets.append(secret)
        claims.append(claim)
    Workspace.objects.bulk_create(rows)
    WorkspaceSecret.objects.bulk_create(secrets)
    Claim.objects.bulk_create(claims)


def tell_steps(workspace: Workspace, steps: Sequence[Step]) -> None:
    """Write events of which nobody is notified, in one statement."""
    now = timezone.now()
    Event.objects.bulk_create(
        Event(
            workspace=workspace,
            number=number,
            run=workspace.run,
            at=now,
            step=step,
            code=DONE_CODES[step],
            data=DATA,
        )
        for number, step in enumerate(steps, workspace.last_event + 1)
    )
    workspace.last_event += len(steps)


def make_claim(workspace: Workspace, phase: Phase) -> Claim:
    now = timezone.now()
    waits = phase == Phase.WAITING
    holds = phase in (Phase.STARTING, Phase.READY, Phase.STOPPING)
    return Claim.objects.create(
        pool=workspace.pool,
        tenant=workspace.tenant,
        user=workspace.owner,
        holder_kind=Claim.Holder.WORKSPACE,
        holder_id=workspace.pk,
        units=1,
        cpu_millicores=4000,
        memory_mib=16_384,
        place=Claim.objects.count() + 1,
        state=Claim.State.WAITING if waits else Claim.State.ADMITTED if holds else Claim.State.RELEASED,
        reason_code="",
        node="" if waits else "gpu-1",
        nodes=[] if waits else ["gpu-1"],
        admitted_at=None if waits else now,
        released_at=None if waits or holds else now,
    )


def settle(workspace: Workspace, phase: Phase) -> None:
    """Set the other fields that go with the phase."""
    now = timezone.now()
    if phase in (Phase.STARTING, Phase.READY):
        workspace.started_at = now - timedelta(seconds=4)
        workspace.node = "gpu-1"
    if phase == Phase.READY:
        workspace.ready_at = now
        workspace.host, workspace.jupyter_port, workspace.ssh_port = "127.0.1.5", 8888, 22
    if phase == Phase.FAILED:
        data: dict[str, Any] = {"raw": "Back-off pulling image"}
        workspace.failure = {"code": "unknown", "data": data, "at": "2026-01-01T00:00:00Z"}
        add_event(workspace, "unknown", level=Event.Level.ERROR, **data)
    if phase in (Phase.STOPPING, Phase.STOPPED, Phase.DELETING, Phase.DELETED):
        workspace.message_code, workspace.message_data = str(phase), {}
        add_event(workspace, str(phase))


def make_flavor(cast: Cast, units: int) -> Flavor:
    """Make a size of so many GPUs in the cast's pool: a100-4 has 4 GPUs, 16 CPU cores and 64 GiB."""
    return Flavor.objects.create(
        slug=f"a100-{units}",
        name=f"{units} A100",
        pool=cast.pool,
        units=units,
        cpu_millicores=4000 * units,
        memory_mib=16_384 * units,
    )


def make_pool(cast: Cast, slug: str, *, gpus: int = 4, quota: int = 4, **values: Any) -> Pool:
    """Make a pool on a node of its own."""
    label = {"pool": slug}
    defaults = {"slug": slug, "name": slug, "cluster": cast.cluster, "node_labels": label}
    made = Pool.objects.create(**(defaults | {"gpu_memory_mib": 81_920} | values))
    room = {"cpu": 64_000, "memory": 512 * GIB, "pods": 110, made.resource_name: gpus}
    Node.objects.create(cluster=cast.cluster, name=slug, labels=label, ready=True, allocatable=room)
    if quota:
        Quota.objects.create(tenant=cast.demo, pool=made, nominal_gpus=quota)
    return made

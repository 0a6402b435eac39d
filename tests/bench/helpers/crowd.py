"""Many tenants, people and workspaces as rows: pages and the API show long lists of them without a cluster."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from uuid import uuid4

from django.db.models import F
from django.utils import timezone

from accounts.credentials.secrets import encrypt
from accounts.models import Membership, Role, Tenant, User
from quotas.models import Claim, Quota
from tests.cast import Cast
from workspaces.launch import keys
from workspaces.models import Desired, Phase, Step, Workspace, WorkspaceSecret

# Phases of twenty workspaces: most run or are stopped, some wait in one long queue.
PHASES = (
    8 * [Phase.READY]
    + 6 * [Phase.STOPPED]
    + 3 * [Phase.WAITING]
    + [Phase.STARTING, Phase.FAILED, Phase.DELETING]
)
FAILURE = {"code": "unknown", "data": {"raw": "Back-off pulling image"}, "at": "2026-01-01T00:00:00Z"}
HOLDS = {Phase.READY, Phase.STARTING, Phase.DELETING}


def make_crowd(cast: Cast, *, tenants: int, people: int, workspaces: int) -> None:
    """Make `people` in each tenant; alice of the cast is a member of all tenants, victor a viewer of all."""
    made = Tenant.objects.bulk_create(Tenant(slug=f"team-{n}", name=f"Team {n}") for n in range(tenants))
    users = User.objects.bulk_create(
        User(username=f"person-{t}-{n}", email=f"p{t}.{n}@example.org")
        for t in range(tenants)
        for n in range(people)
    )
    owners = [(made[index // people], user) for index, user in enumerate(users)]
    Membership.objects.bulk_create(
        [Membership(tenant=tenant, user=user, role=Role.MEMBER) for tenant, user in owners]
        + [Membership(tenant=tenant, user=cast.alice.user, role=Role.MEMBER) for tenant in made]
        + [Membership(tenant=tenant, user=cast.victor.user, role=Role.VIEWER) for tenant in made]
    )
    Quota.objects.bulk_create(Quota(tenant=tenant, pool=cast.pool, nominal_gpus=4) for tenant in made)
    # Every tenth belongs to alice, so that her own list is long too.
    rows = [
        _workspace(cast, *(owners[n % len(owners)] if n % 10 else (made[n % tenants], cast.alice.user)), n)
        for n in range(workspaces)
    ]
    Claim.objects.bulk_create((_claim(row, n) for n, row in enumerate(rows)), batch_size=1000)
    Workspace.objects.bulk_create(rows, batch_size=1000)
    Workspace.objects.update(
        created_at=F("created_at") - F("dirty_marks") * timedelta(seconds=1), dirty_marks=0
    )
    _make_secrets(rows)


def _workspace(cast: Cast, tenant: Tenant, owner: User, number: int) -> Workspace:
    phase, now = PHASES[number % len(PHASES)], timezone.now()
    ready = phase == Phase.READY
    return Workspace(
        tenant=tenant, owner=owner, name=f"run-{number}", image=cast.image, pool=cast.pool, flavor=cast.flavor,
        units=1, cpu_millicores=4000, memory_mib=16_384, env={"GREETING": "hello"}, run=uuid4(), phase=phase,
        desired=Desired.RUNNING if phase in HOLDS or phase == Phase.WAITING else Desired.STOPPED,
        step=Step.READY if ready else Step.IMAGE, step_since=now, message_code="ready" if ready else "",
        node=f"node-{number % 500}" if phase in HOLDS else "", host="127.0.1.5" if ready else "",
        jupyter_port=8888 if ready else None, ssh_port=22 if ready else None, dirty_marks=number,
        failure=FAILURE if phase == Phase.FAILED else None,
    )  # fmt: skip


def _claim(row: Workspace, number: int) -> Claim:
    holds, now = row.phase in HOLDS, timezone.now()
    released = not holds and row.phase != Phase.WAITING
    return Claim(
        id=row.run, pool=row.pool, tenant=row.tenant, user=row.owner, holder_kind=Claim.Holder.WORKSPACE,
        holder_id=row.pk, units=1, cpu_millicores=4000, memory_mib=16_384, place=number + 1,
        state=Claim.State.ADMITTED if holds else Claim.State.RELEASED if released else Claim.State.WAITING,
        node=row.node if holds else "", nodes=[row.node] if holds else [],
        admitted_at=now if holds else None, released_at=now if released else None,
    )  # fmt: skip


def _make_secrets(rows: list[Workspace]) -> None:
    """Make all secrets with the same key: making ten thousand keys is not measured."""
    private, public = keys.new_host_key()
    values = {
        "jupyter_token": encrypt("token"), "host_key": encrypt(private), "host_key_public": public,
        "host_key_fingerprint": keys.fingerprint(public), "env": encrypt("{}"),
    }  # fmt: skip
    secrets = (WorkspaceSecret(workspace=row, **values) for row in rows)
    while batch := list(islice(secrets, 1000)):
        WorkspaceSecret.objects.bulk_create(batch)

"""Functions that `parts.call` runs in a process with Django: most make the rows that a benchmark begins with."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.access import Actor
from accounts.credentials import ssh_keys
from accounts.credentials import tokens as api_tokens
from accounts.models import Membership, Role, Scope, Tenant, User
from clusters.connections import api_for
from clusters.models import Cluster, Installation, Node, PodUsage
from monitoring.figures import thinning
from monitoring.intake import tokens
from quotas.models import Claim, Quota
from quotas.pools.founding import plans_of
from tests.bench.helpers.crowd import make_crowd
from tests.cast import make_cast
from tests.shared.workspace_rows import make_many, make_workspace
from workloads.sizes.sizing import SizeAsked
from workspaces.gateway import passes
from workspaces.gateway.hosts import Site
from workspaces.launch.launch import LaunchSpec, launch
from workspaces.models import Phase, Workspace

GPUS_EACH = (4, 1)  # of the two workspaces on each node of a fleet


def session_of(user: User) -> str:
    """Sign the person in, and return the key of the session."""
    client = Client()
    client.force_login(user)
    return str(client.session.session_key)


def _make_superuser(user: User) -> None:
    user.is_superuser = True
    user.save()


def gateway(port: int) -> list[str]:
    """Make bob's workspace, whose Jupyter is at the port. Return its id, and the secret of a pass for it."""
    cast = make_cast()
    workspace = make_workspace(cast, cast.bob, host="127.0.0.1", jupyter_port=port)
    site = Site(workspace.pk)
    entry = passes.hand_over(session_of(cast.bob.user), cast.bob.user, site)
    entered = passes.enter(entry, site)
    assert entered is not None
    return [str(workspace.pk), entered[0]]


def jump(key: str, port: int) -> str:
    """Make bob's workspace, whose sshd is at the port, and allow him this key. Return the workspace's id."""
    cast = make_cast()
    ssh_keys.add(cast.bob, "bench", Path(f"{key}.pub").read_text())
    return str(make_workspace(cast, cast.bob, host="127.0.0.1", ssh_port=port).pk)


def change_ssh_port(port: int) -> None:
    Workspace.objects.update(ssh_port=port)


def launches(people: int) -> tuple[str, list[str]]:
    """Make the tenant "bench" with so many people, and room for a workspace of each.

    Return a flavor, with one GPU or with none if the cluster has too few, and a token of each person.
    """
    plans = plans_of(api_for(Cluster.objects.get()))
    whole = (plan for plan in plans if plan.units_per_gpu == 1 and plan.total_gpus >= people)
    plan = next(whole, plans[-1])  # the last is without GPUs
    Quota.objects.filter(pool__slug=plan.slug).update(nominal_gpus=0, borrowing_limit_gpus=0)
    Quota.objects.filter(pool__slug=plan.slug, tenant__slug="demo").update(nominal_gpus=people)
    tenant = Tenant.objects.get(slug="demo")
    Tenant.objects.filter(pk=tenant.pk).update(slug="bench")
    users = User.objects.bulk_create(User(username=f"person-{number}") for number in range(people))
    Membership.objects.bulk_create(Membership(tenant=tenant, user=user, role=Role.MEMBER) for user in users)
    return plan.flavors[0].slug, [
        api_tokens.issue(user, "bench", [Scope.READ, Scope.WORKSPACES])[1] for user in users
    ]


def lists(workspaces: int) -> list[str]:
    """Return sessions: of a member of one tenant, a member of all, a viewer of all, an admin."""
    cast = make_cast()
    make_crowd(cast, tenants=20, people=50, workspaces=workspaces)
    _make_superuser(cast.admin.user)
    connection.cursor().execute("ANALYZE")
    member = User.objects.get(username="person-0-1")
    return [session_of(user) for user in (member, cast.alice.user, cast.victor.user, cast.admin.user)]


def samples(nodes: int) -> list[str]:
    """Make a pool of so many nodes, with two workspaces on each.

    Return an agent's token, sessions of bob and of an admin, a workspace's id and a node's id.
    """
    cast = make_cast()
    first = Node.objects.get(name="gpu-1")
    has = {"labels": first.labels, "allocatable": first.allocatable | {"nvidia.com/gpu": 8}}
    Node.objects.bulk_create(
        Node(cluster=cast.cluster, name=f"gpu-{number}", ready=True, **has) for number in range(3, nodes + 1)
    )
    pods = [
        _pod(make_workspace(cast, cast.bob, name=f"run-{number}-{at}", units=gpus, node=f"gpu-{number}"))
        for number in range(1, nodes + 1)
        for at, gpus in enumerate(GPUS_EACH)
    ]
    PodUsage.objects.bulk_create(pods)
    Claim.objects.update(admitted_at=timezone.now() - timedelta(days=500))
    _make_superuser(cast.admin.user)
    token = tokens.issue(None, cast.cluster, "nodes")[1]
    sessions = session_of(cast.bob.user), session_of(cast.admin.user)
    return [token, *sessions, str(Workspace.objects.latest("created_at").pk), str(first.pk)]


def _pod(workspace: Workspace) -> PodUsage:
    return PodUsage(
        cluster=workspace.pool.cluster, uid=workspace.name, namespace="berth-demo", name=workspace.name,
        node=workspace.node, run=workspace.run, requests={"nvidia.com/gpu": workspace.units},
    )  # fmt: skip


def sockets(tenants: int, people: int, workspaces: int) -> list[tuple[list[str], list[str]]]:
    """Return the ids of the workspaces and the people's sessions, for each tenant."""
    return [_team(f"team-{number}", people, workspaces) for number in range(tenants)]


def _team(slug: str, people: int, workspaces: int) -> tuple[list[str], list[str]]:
    tenant = Tenant.objects.create(slug=slug, name=slug)
    users = User.objects.bulk_create(
        User(username=f"{slug}-{n}", email=f"{slug}.{n}@example.org") for n in range(people)
    )
    Membership.objects.bulk_create(Membership(tenant=tenant, user=user, role=Role.MEMBER) for user in users)
    size = SizeAsked(pool="cpu", cpu_millicores=1000, memory_mib=1024)
    made = [
        launch(Actor(user), LaunchSpec(tenant=slug, name=f"run-{n}", image="jupyter", size=size))
        for n, user in enumerate(users[:workspaces])
    ]
    return [str(workspace.pk) for workspace in made], [session_of(user) for user in users]


def thin_each_minute() -> None:
    while True:
        thinning.thin()
        time.sleep(60)


def watcher(kubeconfig: str) -> str:
    """Make a cluster without nodes, and a workspace there. Return the id of the installation."""
    cast = make_cast()
    Node.objects.all().delete()
    Cluster.objects.update(kubeconfig_path=kubeconfig)
    make_workspace(cast, cast.bob)
    return str(Installation.current_id())


def logs(kubeconfig: str, pods: int) -> tuple[str, str, list[list[str]]]:
    """Make so many ready workspaces of bob's. Return the installation's id, his session, and each id and run."""
    cast = make_cast()
    Cluster.objects.update(kubeconfig_path=kubeconfig, connection=Cluster.Connection.KUBECONFIG)
    make_many(cast, cast.bob, pods, Phase.READY)
    rows = Workspace.objects.values_list("pk", "run")
    return (
        str(Installation.current_id()),
        session_of(cast.bob.user),
        [[str(pk), str(run)] for pk, run in rows],
    )

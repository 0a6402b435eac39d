"""When nodes are judged and people told beside what agents report: when a node changes, and as time passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from clusters.models import Cluster, Gpu, Node
from clusters.ticks import is_due
from monitoring import tasks
from monitoring.health import drain, judging, rules, starts
from monitoring.models import AgentState, Trouble
from vitals.pulse import heard_since
from workspaces.models import Workspace

EVERY_SECONDS = 15


def on_nodes_changed(*, cluster: Cluster, names: set[str], **_: object) -> None:
    judge_all(cluster.pk, sorted(names))


def on_relisted(*, cluster: Cluster, **_: object) -> None:
    """Whatever was missed."""
    tasks.enqueue_judging(cluster.pk)


def judge_all(cluster_id: UUID, names: Iterable[str]) -> None:
    """And tell people once: a list may bring hundreds of nodes that changed."""
    for name in names:
        judging.judge(cluster_id, name, tells=False)
    tasks.enqueue_telling(cluster_id)


def judge_cluster(cluster_id: UUID) -> None:
    nodes = Node.objects.filter(cluster=cluster_id).order_by("name")
    judge_all(cluster_id, nodes.values_list("name", flat=True))


def on_tick(**_: object) -> None:
    """By a worker: where hundreds of nodes are unwell, looking at them takes longer than a tick."""
    if is_due(EVERY_SECONDS):
        tasks.enqueue_passing_time()


def pass_time() -> None:
    """What ends, or begins, with time alone; and people whom no task told."""
    starts.forget_old()
    for cluster_id, node in due():
        judging.judge(cluster_id, node, tells=False)
    for cluster_id in unwell():
        tasks.enqueue_telling(cluster_id)
    drain.pass_due()  # last: a run that cannot be stopped keeps nothing else from being seen


def due() -> Iterator[tuple[UUID, str]]:
    """Nodes on which something is wrong, whose agent fell silent, or which no longer exist."""
    open_troubles = Trouble.objects.filter(ended_at=None, about__in=judging.OF_A_NODE).exclude(node="")
    known = open_troubles.filter(cluster=OuterRef("cluster"), node=OuterRef("node"))
    there = Node.objects.filter(cluster=OuterRef("cluster"), name=OuterRef("node"))
    is_silent = rules.silent(timezone.now(), heard_since("web"))
    silent = AgentState.objects.filter(~Exists(known), Exists(there), is_silent)
    slowed = Gpu.objects.filter(~Exists(known), slowed_since__lt=timezone.now() - timedelta(minutes=1))
    for rows in (open_troubles, silent, slowed):
        yield from rows.order_by("cluster_id", "node").values_list("cluster_id", "node").distinct()


def unwell() -> list[UUID]:
    """Clusters in which something is wrong, or somebody suffers from what may be over."""
    troubles = Trouble.objects.filter(ended_at=None).values("cluster")
    suffering = Workspace.objects.exclude(ailments=[]).values("pool__cluster")
    rows = Cluster.objects.filter(Q(pk__in=troubles) | Q(pk__in=suffering))
    return list(rows.values_list("pk", flat=True))

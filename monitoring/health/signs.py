"""Occasions to judge nodes and notify people, beside agents' reports: a node changes, or time passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from clusters.models import Cluster, Gpu, Node
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.health import drain, judging, rules, starts
from monitoring.models import AgentState, Trouble
from vitals.pulse import heard_since
from workspaces.models import Workspace

EVERY_SECONDS = 15


def on_nodes_changed(*, cluster: Cluster, names: set[str], **_: object) -> None:
    judge_all(cluster.pk, sorted(names))


def on_relisted(*, cluster: Cluster, **_: object) -> None:
    """Enqueue judging of all nodes, as changes may have been missed."""
    enqueue.judge_nodes(cluster.pk)


def judge_all(cluster_id: UUID, names: Iterable[str]) -> None:
    """Judge the nodes, then notify people once: one list may bring hundreds of changed nodes."""
    for name in names:
        judging.judge(cluster_id, name, tells=False)
    enqueue.tell_of_health(cluster_id)


def judge_cluster(cluster_id: UUID) -> None:
    nodes = Node.objects.filter(cluster=cluster_id).order_by("name")
    judge_all(cluster_id, nodes.values_list("name", flat=True))


def on_tick(**_: object) -> None:
    """Enqueue the work for a worker: with hundreds of unwell nodes it takes longer than a tick."""
    if is_due(EVERY_SECONDS):
        enqueue.pass_time()


def pass_time() -> None:
    """Apply everything that begins or ends with time, and notify people whom no task notified."""
    starts.forget_old()
    for cluster_id, node in due():
        judging.judge(cluster_id, node, tells=False)
    for cluster_id in clusters_with_problems():
        enqueue.tell_of_health(cluster_id)
    drain.pass_due()  # last, because stopping a run may fail


def due() -> Iterator[tuple[UUID, str]]:
    """Yield nodes with a problem, with a silent agent or a slowed GPU, or which no longer exist."""
    open_troubles = Trouble.objects.filter(ended_at=None, about__in=judging.OF_A_NODE).exclude(node="")
    known = open_troubles.filter(cluster=OuterRef("cluster"), node=OuterRef("node"))
    there = Node.objects.filter(cluster=OuterRef("cluster"), name=OuterRef("node"))
    is_silent = rules.silent(timezone.now(), heard_since("web"))
    silent = AgentState.objects.filter(~Exists(known), Exists(there), is_silent)
    slowed = Gpu.objects.filter(~Exists(known), slowed_since__lt=timezone.now() - timedelta(minutes=1))
    for rows in (open_troubles, silent, slowed):
        yield from rows.order_by("cluster_id", "node").values_list("cluster_id", "node").distinct()


def clusters_with_problems() -> list[UUID]:
    """Return clusters with a problem, or with workspaces whose problem may be over."""
    troubles = Trouble.objects.filter(ended_at=None).values("cluster")
    suffering = Workspace.objects.exclude(conditions=[]).values("pool__cluster")
    rows = Cluster.objects.filter(Q(pk__in=troubles) | Q(pk__in=suffering))
    return list(rows.values_list("pk", flat=True))

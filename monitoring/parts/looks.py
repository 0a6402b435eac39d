"""Looks at the parts of clusters and the load of their nodes: read, judge (rules.py, versions.py, load.py), write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from clusters.models import Cluster, Node, PartPod
from clusters.nodes.node_labels import driver_of
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.dcgm.prometheus import NoAnswer, Prometheus
from monitoring.health import judging
from monitoring.health.rules import About, Verdict
from monitoring.models import AgentState, NodeLoad, Trouble
from monitoring.parts import load, rules, versions
from monitoring.parts.lasting import lasting
from quotas.models import Pool

EVERY_SECONDS = 20
LOAD_EVERY_SECONDS = 60
MINUTES, STEP, WITHIN_SECONDS = 3, "1m", 20.0
PARTS = (About.PART, About.VERSIONS)


def on_tick(**_: object) -> None:
    reached = Cluster.objects.filter(unreachable_since=None)
    if is_due(EVERY_SECONDS):
        for cluster_id in reached.values_list("pk", flat=True):
            enqueue.look_at_parts(cluster_id)
    if is_due(LOAD_EVERY_SECONDS):
        told = ~Q(prometheus_url="") | Q(pk__in=NodeLoad.objects.values("cluster"))
        for cluster_id in reached.filter(told).values_list("pk", flat=True):
            enqueue.look_at_load(cluster_id)


def look(cluster_id: UUID) -> None:
    """Judge the parts of a cluster and its versions."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None or cluster.unreachable_since:
        return
    now = timezone.now()
    found = [*rules.verdicts(seen_in(cluster, now)), *versions.verdicts(inventory_of(cluster))]
    with transaction.atomic():
        judging.lock(cluster.pk, "")
        known = Trouble.objects.filter(cluster=cluster, about__in=PARTS, ended_at=None)
        judging.write(cluster.pk, "", known, lasting(cluster, PARTS, found, now), now)


def seen_in(cluster: Cluster, now: datetime) -> rules.Seen:
    return rules.Seen(
        now,
        pods=list(PartPod.objects.filter(cluster=cluster)),
        nodes=list(Node.objects.filter(cluster=cluster)),
        uses_hami=Pool.objects.filter(cluster=cluster, sharing="hami").exists(),
    )


def inventory_of(cluster: Cluster) -> versions.Inventory:
    nodes = list(Node.objects.filter(cluster=cluster))
    drivers = {node.name: driver_of(node.labels) for node in nodes}
    agents = AgentState.objects.filter(cluster=cluster).exclude(driver_version="")
    drivers |= dict(agents.values_list("node", "driver_version"))
    storage = NodeLoad.objects.filter(cluster=cluster, node="").first()
    return versions.Inventory(
        api=cluster.version,
        nodes=nodes,
        pods=list(PartPod.objects.filter(cluster=cluster)),
        drivers=drivers,
        ceph=frozenset(storage.figures.get("versions", ()) if storage else ()),
        sharing=frozenset(Pool.objects.filter(cluster=cluster).values_list("sharing", flat=True)),
    )


# --- load, from a Prometheus


def look_at_load(cluster_id: UUID) -> None:
    """Read the load of a cluster's nodes. A Prometheus that does not answer ends no trouble."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return
    try:
        of_nodes, of_ceph = asked(cluster) if cluster.prometheus_url else ({}, {})
    except NoAnswer:
        return  # doctor reports it
    now = timezone.now()
    found = [
        verdict for node, figures in of_nodes.items() for verdict in load.verdicts_of_node(node, figures)
    ]
    found += load.verdicts_of_ceph(of_ceph)
    with transaction.atomic():
        judging.lock(cluster.pk, "")
        keep(cluster, {**of_nodes, **({"": of_ceph} if of_ceph else {})}, now)
        write_load(cluster, lasting(cluster, (About.LOAD,), found, now), now)


def asked(cluster: Cluster) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """Return the figures of nodes and of Ceph. Raise NoAnswer."""
    url, token_path = cluster.prometheus_url, cluster.prometheus_token_path
    with closing(Prometheus(url, token_path, within_seconds=WITHIN_SECONDS)) as prometheus:
        told = {
            figure: prometheus.series(figure.expression, minutes=MINUTES, step=STEP)
            for figure in (*load.NODES, *load.STORAGE)
        }
    known = frozenset(Node.objects.filter(cluster=cluster).values_list("name", flat=True))
    nodes = load.of_nodes({figure.name: told[figure] for figure in load.NODES}, known)
    return nodes, load.of_ceph({figure.name: told[figure] for figure in load.STORAGE})


def keep(cluster: Cluster, figures: Mapping[str, Mapping[str, Any]], now: datetime) -> None:
    """Write the figures down. Rows of what Prometheus no longer tells go."""
    NodeLoad.objects.bulk_create(
        [
            NodeLoad(cluster=cluster, node=node, figures=told, at=now)
            for node, told in sorted(figures.items())
        ],
        update_conflicts=True,
        unique_fields=["cluster", "node"],
        update_fields=["figures", "at"],
    )
    NodeLoad.objects.filter(cluster=cluster).exclude(node__in=figures.keys()).delete()


def write_load(cluster: Cluster, found: Iterable[Verdict], now: datetime) -> None:
    """Write troubles of load, each with its node; that of Ceph with none."""
    by_node: defaultdict[str, list[Verdict]] = defaultdict(list)
    standing: defaultdict[str, list[Trouble]] = defaultdict(list)
    for verdict in found:
        by_node["" if verdict.code == load.CEPH else verdict.subject.partition(" ")[0]].append(verdict)
    for trouble in Trouble.objects.filter(cluster=cluster, about=About.LOAD, ended_at=None):
        standing[trouble.node].append(trouble)
    for node in by_node.keys() | standing.keys():
        judging.write(cluster.pk, node, standing[node], by_node[node], now)

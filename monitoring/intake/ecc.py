"""ECC as a label of the node, `berth.dev/gpu.ecc`, from its agent or a Prometheus, so that pools can choose by it.

The label is set on the node in Kubernetes: admission counts nodes by it, and pods request it from the scheduler, so the
two cannot disagree. Without a report an admin's own label stays as it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.models import Cluster, Gpu, Node
from clusters.watch.ticks import is_due
from monitoring import enqueue
from quotas.pools.selection import ECC

log = logging.getLogger(__name__)

# Some GPUs with ECC, some without: such a node fits no pool that asks for either.
MIXED = "mixed"
EVERY_SECONDS = 60


def label_of(ecc: Iterable[bool | None]) -> str | None:
    """Return the label for a node's GPUs; None if ECC is unknown for any."""
    told = set(ecc)
    if not told or None in told:
        return None
    return MIXED if len(told) > 1 else str(told.pop()).lower()


def wrong(cluster_id: UUID | None = None) -> dict[UUID, dict[str, str]]:
    """Return missing or wrong labels as {cluster: {node: right value}}. Two queries."""
    gpus = Gpu.objects.all()
    nodes = Node.objects.filter(cluster__unreachable_since=None)
    if cluster_id:
        gpus, nodes = gpus.filter(cluster=cluster_id), nodes.filter(cluster=cluster_id)
    told: dict[tuple[UUID, str], set[bool | None]] = defaultdict(set)
    for of_cluster, node, ecc, state in gpus.values_list("cluster_id", "node", "ecc", "sample__state"):
        if state != "gone":
            told[of_cluster, node].add(ecc)
    found: dict[UUID, dict[str, str]] = defaultdict(dict)
    for of_cluster, node, label in nodes.values_list("cluster_id", "name", f"labels__{ECC}"):
        wanted = label_of(told.get((of_cluster, node), ()))
        if wanted and wanted != label:
            found[of_cluster][node] = wanted
    return found


def on_tick(**_: object) -> None:
    if is_due(EVERY_SECONDS):
        for cluster_id in wrong():
            enqueue.label(cluster_id)


def label(cluster_id: UUID) -> None:
    """Set the labels. Safe to repeat; a failure is tried again a minute later."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return
    for node, ecc in wrong(cluster_id).get(cluster_id, {}).items():
        try:
            api_for(cluster).merge_patch("Node", None, node, {"metadata": {"labels": {ECC: ecc}}})
        except ClusterError as error:
            log.warning("node %s of %s was not labelled: %s", node, cluster.slug, error.message)
            return

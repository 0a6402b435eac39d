"""GPUs that are out of use (`Gpu.out_code`, which the rooms above write), and the effect on their nodes.

The kubelet chooses which GPU a pod gets, and nothing can steer it. While it could still give out a bad GPU, the node
takes nothing new that needs such a GPU. A GPU that is held is not given to another pod, and one that the device
plugin withdrew is given to nobody. HAMi gets a list of cards to avoid, so there only those cards are out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery

from clusters.models import Gpu, Node, PodUsage
from clusters.nodes.gpus import NodeKey
from quotas import sharing
from quotas.models import Claim, Pool

PodKey = tuple[UUID, str, str, str]  # cluster, node, namespace, name


@dataclass(frozen=True)
class Bad:
    """A GPU out of use. `held`: how many containers have it or a part of it; `is_cut`: by MIG, None if unknown."""

    uuid: str
    held: int = 0
    is_cut: bool | None = None


def read(clusters: Iterable[UUID]) -> dict[NodeKey, list[Bad]]:
    """Return bad GPUs by node, in two queries; in one if none of them is held."""
    bad = Gpu.objects.filter(cluster__in=list(clusters)).exclude(out_code="")
    rows = list(bad.only("cluster_id", "node", "uuid", "held_by", "seen_at", "facts"))
    since = _pods_on({row.node for row in rows if row.held_by})
    found: defaultdict[NodeKey, list[Bad]] = defaultdict(list)
    for row in rows:
        held = [one for one in row.held_by if _is_there(row, one, since)]
        found[row.cluster_id, row.node].append(Bad(row.uuid, len(held), row.facts.get("mig")))
    return found


def _pods_on(nodes: set[str]) -> dict[PodKey, datetime | None]:
    """Return when the run of each pod there was admitted; None for pods of others."""
    if not nodes:
        return {}
    began = Subquery(Claim.objects.filter(pk=OuterRef("run")).values("admitted_at")[:1])
    pods: Iterable[Any] = PodUsage.objects.filter(node__in=nodes).annotate(began=began)
    return {(pod.cluster_id, pod.node, pod.namespace, pod.name): pod.began for pod in pods}


def _is_there(row: Gpu, held: Mapping[str, Any], since: Mapping[PodKey, datetime | None]) -> bool:
    """Return True if the pod of that name is still the one that the agent reported, not the next run's."""
    key = (row.cluster_id, row.node, held["namespace"], held["pod"])
    began = since.get(key)
    return key in since and (began is None or (row.seen_at is not None and row.seen_at >= began))


def concerning(pool: Pool, bad: Iterable[Bad]) -> list[Bad]:
    """Return the bad GPUs that the pool's units are cut from, or may be."""
    is_cut = sharing.of(pool).is_instance
    return [one for one in bad if pool.has_gpus and one.is_cut in (None, is_cut)]


def may_be_given(pool: Pool, bad: Sequence[Bad], withdrawn_units: int) -> bool:
    """Return True if the next pod may get one. Withdrawn units count as the bad GPUs only if they could be all."""
    if sharing.of(pool).avoid_annotation:
        return False
    free = [one for one in concerning(pool, bad) if one.held < pool.units_per_gpu]
    return bool(free) and withdrawn_units < pool.units_per_gpu * len(concerning(pool, bad))


def keep_off(node: Node, bad: Iterable[Bad]) -> None:
    """Mark HAMi's cards of these GPUs as unusable, in memory only."""
    names = {one.uuid for one in bad}
    node.devices = [card | {"usable": card["usable"] and card["id"] not in names} for card in node.devices]

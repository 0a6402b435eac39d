"""Reports of node agents on each GPU, for the map: how busy it is, who has it, and why it is out of use.

The load of a card is the state of the pool and shown to everybody; who has it is shown by the map's own rules. An
agent need not run: without its reports, the map is drawn from what Kubernetes counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.fields.json import KeyTransform
from django.utils import timezone
from django.utils.translation import gettext as _

from clusters import explain
from clusters.models import Gpu, Node
from clusters.nodes.gpus import NodeKey
from quotas import sharing
from quotas.models import Pool
from quotas.pools.health import cards_said

# An older report does not show how busy a GPU is now.
FRESH = timedelta(minutes=2)
# Lowest percent of each level: a little, half, most of it.
LEVELS = (5, 35, 70)
# Columns read of a GPU. Model instances of thousands take twice as long, and their samples are large.
READ = (
    "cluster_id", "node", "uuid", "index", "memory_mib", "facts", "utilization_percent", "memory_used_mib",
    "seen_at", "held_by", "out_code",
)  # fmt: skip

Pod = tuple[str, str]  # namespace, name
Shares = tuple[tuple[str, int], ...]  # units of each GPU, by its UUID


@dataclass(frozen=True)
class GpuReport:
    """A GPU in words; `use_percent` is None without a recent report."""

    words: str
    use_percent: int | None = None
    is_broken: bool = False

    @property
    def level(self) -> int:
        return sum((self.use_percent or 0) >= least for least in LEVELS)


def read_gpus(nodes: Iterable[Node]) -> defaultdict[NodeKey, list[Any]]:
    """Return the GPUs of each node in their order, as rows of `READ` and their temperature. One query."""
    wanted = {(node.cluster_id, node.name) for node in nodes}
    rows = Gpu.objects.filter(
        cluster__in={cluster for cluster, _name in wanted}, node__in={name for _cluster, name in wanted}
    ).annotate(degrees=KeyTransform("temperature_celsius", "sample"))
    found: defaultdict[NodeKey, list[Any]] = defaultdict(list)
    for row in rows.values_list(*READ, "degrees", named=True):
        found[row.cluster_id, row.node].append(row)
    return found


class ReportTexts:
    """Words for many GPUs. Translations are looked up once, not for each of thousands of GPUs."""

    def __init__(self) -> None:
        self._now = timezone.now()
        self._late = _("GPU %(gpu)s: no metrics at the moment")
        self._nothing = _("GPU %(gpu)s: no metrics available")
        self._busy = _("%(percent)s%% busy")
        self._memory = _("%(used)s of %(all)s GiB of its memory in use")
        self._degrees = _("%(degrees)s °C")
        self._all = _("GPU %(gpu)s: %(figures)s")
        self._comma = _(", ")

    def report_on(self, gpu: Any) -> GpuReport:
        name = {"gpu": gpu.index}
        if gpu.out_code:
            why = explain.sentence(gpu.out_code, {"gpu": gpu.index, "node": gpu.node, **gpu.facts})
            return GpuReport(_("GPU %(gpu)s is out of use. %(why)s") % {**name, "why": why}, is_broken=True)
        if gpu.seen_at is None or self._now - gpu.seen_at > FRESH:
            return GpuReport(self._late % name)
        figures = self._comma.join(self._figures(gpu))
        if not figures:
            return GpuReport(self._nothing % name)
        return GpuReport(self._all % {**name, "figures": figures}, gpu.utilization_percent)

    def _figures(self, gpu: Any) -> Iterator[str]:
        if gpu.utilization_percent is not None:
            yield self._busy % {"percent": gpu.utilization_percent}
        if gpu.memory_used_mib is not None and gpu.memory_mib:
            yield self._memory % {"used": gib(gpu.memory_used_mib), "all": gib(gpu.memory_mib)}
        if gpu.degrees is not None:
            yield self._degrees % {"degrees": gpu.degrees}


def shares_held(gpus: Sequence[Any]) -> dict[Pod, Shares]:
    """Return how many units of each GPU a pod has: the kubelet gave one device for each."""
    found: defaultdict[Pod, Counter[str]] = defaultdict(Counter)
    for gpu in gpus:
        for held in gpu.held_by:
            found[held["namespace"], held["pod"]][gpu.uuid] += 1
    return {pod: tuple(units.items()) for pod, units in found.items()}


def cards_of(pool: Pool, node: Node, gpus: Sequence[Any], offered: int) -> dict[str, bool] | None:
    """Return the cards that the node's units are cut from, and whether each works; None if unknown."""
    way = sharing.of(pool)
    if way.by_card:
        broken = {gpu.uuid for gpu in gpus if gpu.out_code}
        return {card["id"]: card["usable"] and card["id"] not in broken for card in node.devices}
    gpus = [gpu for gpu in gpus if bool(gpu.facts.get("mig")) == way.is_instance]
    has = max(node.capacity.get(pool.resource_name, 0), cards_said(node, pool), offered)
    if way.by_memory or not gpus or len(gpus) * pool.units_per_gpu != has:
        return None
    works = {gpu.uuid: not gpu.out_code for gpu in gpus}
    # Others that the device plugin withdrew are among those that nobody has; it does not report which.
    withdrawn = (has - offered) // pool.units_per_gpu - list(works.values()).count(False)
    idle = [gpu.uuid for gpu in reversed(gpus) if works[gpu.uuid] and not gpu.held_by]
    return works | dict.fromkeys(idle[: max(0, withdrawn)], False)


def gib(mib: int) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0")

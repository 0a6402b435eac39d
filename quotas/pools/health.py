"""Nodes of a pool that take nothing new now, and why: nodes that are out, and GPUs that do not work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import ngettext_lazy

from clusters.models import Node
from clusters.nodes.node_labels import COUNT
from quotas import sharing
from quotas.models import Pool
from quotas.pools import bad_gpus
from quotas.pools.bad_gpus import Bad

SHUT_OUT = ("NoSchedule", "NoExecute")


class Trouble(StrEnum):
    """Reason why a node takes nothing new."""

    NONE = ""
    NOT_READY = "not-ready"
    CORDONED = "cordoned"
    UNWELL = "unwell"
    TAINTED = "tainted"


@dataclass(frozen=True)
class Out:
    """Counts of a pool: nodes out of use by reason, their units, and the broken units of the others."""

    not_ready: int = 0
    cordoned: int = 0
    unwell: int = 0
    tainted: int = 0
    units: int = 0
    broken_units: int = 0

    def __bool__(self) -> bool:
        return bool(self.not_ready or self.cordoned or self.unwell or self.tainted or self.broken_units)


def trouble_of(node: Node, pool: Pool, bad: Sequence[Bad] = ()) -> Trouble:
    """Return why the node takes nothing new. `bad`: its GPUs that are out of use."""
    if not node.ready:
        return Trouble.NOT_READY
    if node.unschedulable:
        return Trouble.CORDONED
    if is_unwell(node, pool, bad):
        return Trouble.UNWELL
    return Trouble.TAINTED if is_shut_out(node, pool) else Trouble.NONE


def is_unwell(node: Node, pool: Pool, bad: Sequence[Bad]) -> bool:
    """Return True if the node or its GPUs do not work, or the next pod might get a GPU that does not."""
    if node.out_code or (pool.has_gpus and node.gpus_out_code):
        return True
    return bad_gpus.may_be_given(pool, bad, withdrawn_units(node, pool))


def is_shut_out(node: Node, pool: Pool) -> bool:
    """Return True if the node has a taint that the pool's pods do not tolerate."""
    shut = (taint for taint in node.taints if taint.get("effect") in SHUT_OUT)
    return any(not any(tolerates(toleration, taint) for toleration in pool.tolerations) for taint in shut)


def broken_units(node: Node, pool: Pool, bad: Sequence[Bad] = ()) -> int:
    """Return the units that the node cannot give, or those that do not work; the larger of both."""
    found = pool.units_per_gpu * len(bad_gpus.concerning(pool, bad))
    return max(withdrawn_units(node, pool), found)


def withdrawn_units(node: Node, pool: Pool) -> int:
    """Return the units that the node has, by device plugin or label, and does not offer."""
    if sharing.of(pool).by_card:
        return int(pool.units_per_gpu * sum(not card["usable"] for card in node.devices))
    has: int = max(node.capacity.get(pool.resource_name, 0), cards_said(node, pool))
    offered: int = node.allocatable.get(pool.resource_name, 0)
    return max(0, has - offered)


def cards_said(node: Node, pool: Pool) -> int:
    """Return the units of the GPUs that the node says it has; 0 if it does not say."""
    said = node.labels.get(COUNT, "")
    return int(said) * pool.units_per_gpu if sharing.of(pool).counts_cards and said.isdecimal() else 0


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Match as Kubernetes does: an empty key with Exists is every taint, an empty effect is every effect."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


OUT_OF_ORDER = {
    "not_ready": ngettext_lazy("%(n)d node is not ready.", "%(n)d nodes are not ready.", "n"),
    "cordoned": ngettext_lazy(
        "%(n)d node is closed by an admin.", "%(n)d nodes are closed by an admin.", "n"
    ),
    "unwell": ngettext_lazy(
        "%(n)d node is out of use: it, or one of its GPUs, does not work.",
        "%(n)d nodes are out of use: they, or some of their GPUs, do not work.",
        "n",
    ),
    "broken_gpus": ngettext_lazy("%(n)d GPU is broken.", "%(n)d GPUs are broken.", "n"),
}

# A node, its trouble, the units that it gives when empty, and its bad GPUs.
Judged = tuple[Node, Trouble, int, Sequence[Bad]]


def out_of(pool: Pool, nodes: Iterable[Judged]) -> Out:
    """Count what is out of use among the pool's own nodes."""
    troubles: Counter[Trouble] = Counter()
    units = broken = 0
    for node, trouble, whole_units, bad in nodes:
        troubles[trouble] += 1
        if trouble:
            units += whole_units
        else:
            broken += broken_units(node, pool, bad)
    return Out(
        not_ready=troubles[Trouble.NOT_READY],
        cordoned=troubles[Trouble.CORDONED],
        unwell=troubles[Trouble.UNWELL],
        tainted=troubles[Trouble.TAINTED],
        units=units,
        broken_units=broken,
    )


def told(pool: Pool, out: Out) -> dict[str, int]:
    """Return counts of what is out of order, without nodes that are kept for others."""
    broken_gpus = -(-out.broken_units // pool.units_per_gpu)  # one that is broken in part counts
    counts = {
        "not_ready": out.not_ready,
        "cordoned": out.cordoned,
        "unwell": out.unwell,
        "broken_gpus": broken_gpus,
    }
    return {name: count for name, count in counts.items() if count}


def words(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence for each, for people who wait."""
    return [str(text % {"n": counts[name]}) for name, text in OUT_OF_ORDER.items() if counts.get(name)]

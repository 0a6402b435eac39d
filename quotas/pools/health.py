"""What of a pool's nodes takes nothing new now, and why: nodes that are out, and GPUs that do not work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import ngettext

from clusters.models import Node
from quotas.models import Pool, Sharing

SHUT_OUT = ("NoSchedule", "NoExecute")
# Where a card shows up as its replicas: the node says how many cards it has, so a missing one is known.
COUNTED_BY_NODE = (Sharing.EXCLUSIVE, Sharing.TIME_SLICING, Sharing.MPS)
CARDS_LABEL = "nvidia.com/gpu.count"


class Trouble(StrEnum):
    """Why a node takes nothing new."""

    NONE = ""
    NOT_READY = "not-ready"
    CORDONED = "cordoned"
    TAINTED = "tainted"


@dataclass(frozen=True)
class Out:
    """Of one pool: nodes by why they are out, the units that those have, and the broken units of the others."""

    not_ready: int = 0
    cordoned: int = 0
    tainted: int = 0
    units: int = 0
    broken_units: int = 0

    def __bool__(self) -> bool:
        return bool(self.not_ready or self.cordoned or self.tainted or self.broken_units)


def trouble_of(node: Node, pool: Pool) -> Trouble:
    if not node.ready:
        return Trouble.NOT_READY
    if node.unschedulable:
        return Trouble.CORDONED
    return Trouble.TAINTED if is_shut_out(node, pool) else Trouble.NONE


def is_shut_out(node: Node, pool: Pool) -> bool:
    """By a taint that the pool's pods do not tolerate."""
    shut = (taint for taint in node.taints if taint.get("effect") in SHUT_OUT)
    return any(not any(tolerates(toleration, taint) for toleration in pool.tolerations) for taint in shut)


def broken_units(node: Node, pool: Pool) -> int:
    """What the node has, by its device plugin or by its label, and cannot give."""
    if pool.sharing == Sharing.HAMI:
        return int(pool.units_per_gpu * sum(not card["usable"] for card in node.devices))
    has: int = max(node.capacity.get(pool.resource_name, 0), cards_said(node, pool))
    offered: int = node.allocatable.get(pool.resource_name, 0)
    return max(0, has - offered)


def cards_said(node: Node, pool: Pool) -> int:
    """The units of the GPUs that the node says it has; 0 where that is not told."""
    said = node.labels.get(CARDS_LABEL, "")
    return int(said) * pool.units_per_gpu if pool.sharing in COUNTED_BY_NODE and said.isdecimal() else 0


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """As Kubernetes means it: an empty key with Exists is every taint, an empty effect is every effect."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def out_of(pool: Pool, nodes: Iterable[tuple[Node, int]]) -> Out:
    """Of the pool's own nodes, each with the units that it gives when nothing is in the way."""
    troubles: Counter[Trouble] = Counter()
    units = broken = 0
    for node, whole_units in nodes:
        trouble = trouble_of(node, pool)
        troubles[trouble] += 1
        if trouble:
            units += whole_units
        else:
            broken += broken_units(node, pool)
    return Out(
        troubles[Trouble.NOT_READY], troubles[Trouble.CORDONED], troubles[Trouble.TAINTED], units, broken
    )


def told(pool: Pool, out: Out) -> dict[str, int]:
    """What is out of order, counted; without nodes that are kept for others."""
    broken_gpus = -(-out.broken_units // pool.units_per_gpu)  # one that is broken in part counts
    counts = {"not_ready": out.not_ready, "cordoned": out.cordoned, "broken_gpus": broken_gpus}
    return {name: count for name, count in counts.items() if count}


def words(counts: Mapping[str, int]) -> list[str]:
    """A sentence for each, for people who wait."""
    n = {name: counts.get(name, 0) for name in ("not_ready", "cordoned", "broken_gpus")}
    texts = {
        "not_ready": ngettext("%(n)d node is not ready.", "%(n)d nodes are not ready.", n["not_ready"]),
        "cordoned": ngettext(
            "%(n)d node is closed by an admin.", "%(n)d nodes are closed by an admin.", n["cordoned"]
        ),
        "broken_gpus": ngettext("%(n)d GPU is broken.", "%(n)d GPUs are broken.", n["broken_gpus"]),
    }
    return [texts[name] % {"n": count} for name, count in n.items() if count]

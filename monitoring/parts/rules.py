"""Rules for parts of a cluster, from the rows of their pods. Pure: rows in, verdicts out.

A pod on a node that is not ready is left out: the node's own trouble says more. What a rollout shows for a moment is
none; `lasting.py` waits for it to last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from clusters.models import Node, PartPod
from clusters.nodes.node_labels import PRODUCT
from clusters.nodes.parts import BY_NAME
from monitoring.health.rules import About, Verdict

# A crash counts as "again and again" if it was not the first few, and is this young: back-off is 5 minutes at most.
CRASHES, CRASHED_WITHIN = 3, timedelta(minutes=10)
UNREADY_FOR = timedelta(minutes=3)
# A set belongs on all nodes if it is on this share of them, and on so many.
SHARE, FEWEST = 0.7, 3
MOST_NAMED = 8


@dataclass(frozen=True)
class Seen:
    """Parts and nodes of one cluster at one time."""

    now: datetime
    pods: Sequence[PartPod]
    nodes: Sequence[Node]
    # Whether a pool shares its GPUs by HAMi.
    uses_hami: bool = False

    @property
    def usable(self) -> list[Node]:
        return [node for node in self.nodes if node.ready and not node.unschedulable]


def verdicts(seen: Seen) -> list[Verdict]:
    return [*of_pods(seen), *missing(seen), *without_hami(seen)]


def of_pods(seen: Seen) -> Iterator[Verdict]:
    """Yield parts whose pods crash again and again, or are not ready; each once, with its nodes."""
    away = {node.name for node in seen.nodes if not node.ready}
    crashing: defaultdict[str, list[PartPod]] = defaultdict(list)
    unready: defaultdict[str, list[PartPod]] = defaultdict(list)
    for pod in seen.pods:
        if pod.node in away:
            continue
        if is_crashing(pod, seen.now):
            crashing[pod.part].append(pod)
        elif not pod.ready and pod.unready_since and seen.now - pod.unready_since >= UNREADY_FOR:
            unready[pod.part].append(pod)
    for code, found in (("part_crashing", crashing), ("part_not_ready", unready)):
        for part, pods in sorted(found.items()):
            told = next((pod.detail for pod in pods if pod.detail), "")
            yield of_part(code, part, [pod.node or str(pod) for pod in pods], raw=told)


def is_crashing(pod: PartPod, now: datetime) -> bool:
    if pod.detail.startswith("CrashLoopBackOff"):
        return True
    return pod.restarts >= CRASHES and pod.crashed_at is not None and now - pod.crashed_at < CRASHED_WITHIN


def missing(seen: Seen) -> Iterator[Verdict]:
    """Yield sets that run on most nodes but not on all: those with GPUs for what serves GPUs, else all usable ones."""
    on: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in seen.pods:
        if pod.owner.startswith("DaemonSet/") and pod.node:
            on[pod.part, pod.owner].add(pod.node)
    covered: defaultdict[str, set[str]] = defaultdict(set)  # several sets of one part may divide the nodes
    for (part, _owner), nodes in on.items():
        covered[part] |= nodes
    absent: defaultdict[str, set[str]] = defaultdict(set)
    for part, nodes in covered.items():
        expected = {node.name for node in seen.usable if is_expected(node, BY_NAME[part].role)}
        there = expected & nodes
        if len(there) >= FEWEST and len(there) >= SHARE * len(expected):
            absent[part] = expected - there
    for part, names in sorted(absent.items()):
        if names:
            yield of_part("part_missing", part, sorted(names))


def is_expected(node: Node, role: str) -> bool:
    """Return True if a part with this role can be expected on the node."""
    if (
        node.labels.get("type") == "virtual-kubelet"
        or node.labels.get("kubernetes.io/os", "linux") != "linux"
    ):
        return False
    return PRODUCT in node.labels if role in ("gpus", "tools") else True


def without_hami(seen: Seen) -> Iterator[Verdict]:
    """Yield HAMi's scheduler if pools count on it, its device plugin is there, and no pod of the scheduler.

    Without either, HAMi's images may have other names here, so nothing is known.
    """
    its = [pod.owner.startswith("DaemonSet/") for pod in seen.pods if pod.part == "HAMi"]
    if seen.uses_hami and its and all(its):
        yield Verdict(About.PART, "HAMi", "part_absent", data={"part": "HAMi"})


def of_part(code: str, part: str, names: Iterable[str], **data: Any) -> Verdict:
    every = list(dict.fromkeys(names))
    return Verdict(About.PART, part, code, data={"part": part, **placed(every), **data})


def placed(names: Sequence[str]) -> Mapping[str, Any]:
    """Return data that names the nodes: some for the sentence, all for their pages."""
    others = f" (+{len(names) - MOST_NAMED})" if len(names) > MOST_NAMED else ""
    return {"where": ", ".join(names[:MOST_NAMED]) + others, "on": list(names[:500])}

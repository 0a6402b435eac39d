"""Preemption and its messages: pods of lower priority are evicted if that makes room. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from devcluster.resources import Obj
from devcluster.scheduling.filters import Wishes
from devcluster.scheduling.fitting import NodeState, Rejection
from devcluster.values.qos import requests

NOT_HELPFUL = Rejection(("Preemption is not helpful for scheduling",))
NO_VICTIMS = Rejection(("No preemption victims found for incoming pod",))


def priority(pod: Obj) -> int:
    return int(pod["spec"].get("priority", 0))


class Preemption:
    """Choice of a node and of the pods to evict there; `told` is the part of FailedScheduling if no choice exists."""

    def __init__(
        self,
        pod: Obj,
        states: list[NodeState],
        refused: Mapping[str, Rejection],
        wishes: Callable[[list[NodeState]], Wishes],
    ):
        self._pod, self._states, self._wishes = pod, states, wishes
        self.node, self.victims, self.told = "", list[Obj](), ""
        if pod["spec"].get("preemptionPolicy") == "Never":
            self.told = "not eligible due to preemptionPolicy=Never."
            return
        reasons, found = list[Rejection](), list[tuple[str, list[Obj]]]()
        for state in states:
            left = self._try(state) if refused[state.name].resolvable else NOT_HELPFUL
            if isinstance(left, Rejection):
                reasons.append(left)
            else:
                found.append((state.name, left))
        if found:
            # Prefer the victims of the lowest priority, and then the fewest.
            self.node, self.victims = min(found, key=lambda f: (max(map(priority, f[1])), len(f[1])))
        else:
            self.told = told(reasons)

    def _try(self, state: NodeState) -> list[Obj] | Rejection:
        """Return the pods that must leave this node, or the reason why that does not help."""
        lower = [pod for pod in state.pods.values() if priority(pod) < priority(self._pod)]
        if not lower:
            return NO_VICTIMS
        if rejection := self._rejection_without(state, lower):
            return rejection
        victims = list(lower)
        for pod in sorted(lower, key=priority, reverse=True):  # keep the most important first
            others = [victim for victim in victims if victim is not pod]
            if self._rejection_without(state, others) is None:
                victims = others
        return victims

    def _rejection_without(self, state: NodeState, victims: list[Obj]) -> Rejection | None:
        gone = {pod["metadata"]["uid"] for pod in victims}
        used = Counter(state.used)
        for pod in victims:
            used.subtract(requests(pod["spec"]))
        without = replace(
            state,
            used=used,
            pods={uid: pod for uid, pod in state.pods.items() if uid not in gone},
            repelling={uid: pod for uid, pod in state.repelling.items() if uid not in gone},
        )
        return self._wishes([without if s is state else s for s in self._states]).rejection(without)


def explain(rejections: Iterable[Rejection], preemption: str) -> str:
    """Return `0/N nodes are available: …` with counts, and the result of preemption."""
    tail = f" no new claims to deallocate, preemption: {preemption}" if preemption else ""
    return told(rejections) + tail


def told(rejections: Iterable[Rejection]) -> str:
    rejections = list(rejections)
    counts = Counter(reason for r in rejections for reason in r.reasons)
    reasons = ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items()))
    return f"0/{len(rejections)} nodes are available: {reasons}."

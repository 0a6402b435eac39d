"""Requirements of one pod on nodes: refusals in kube-scheduler's order and words, and the best node. Pure."""

from collections.abc import Callable, Sequence

from devcluster.resources import Obj
from devcluster.scheduling.fitting import (
    NodeState,
    Rejection,
    intolerable,
    named_nodes,
    preference,
    selector_fits,
    tolerated,
)
from devcluster.scheduling.spreading import NamespaceLabels, Neighbours, Spread
from devcluster.values.qos import requests

Filter = Callable[[NodeState], Rejection | None]
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
BEST = 100
"""What each scorer gives to the node that suits best, before its weight."""


class Wishes:
    """Requirements of one pod, prepared once for all nodes."""

    def __init__(self, pod: Obj, states: Sequence[NodeState], volumes: Filter, labels_of: NamespaceLabels):
        self._spec = pod["spec"]
        self._asked = requests(self._spec)
        self._named = named_nodes(self._spec)
        spread, neighbours = Spread(pod, states), Neighbours(pod, states, labels_of)
        self._filters: tuple[Filter, ...] = (
            self._among_the_named,
            self._unschedulable,
            self._untolerated,
            self._unselected,
            self._short,
            volumes,
            spread.rejection,
            neighbours.rejection,
        )
        self._scorers: tuple[tuple[int, Callable[[NodeState], int]], ...] = (
            (3, lambda state: -len(intolerable(state.node, self._spec, ("PreferNoSchedule",)))),
            (2, lambda state: preference(self._spec, state.node)),
            (2, spread.score),
            (2, neighbours.score),
        )

    def rejection(self, state: NodeState) -> Rejection | None:
        """Return the refusal of the first filter that refuses the node, if any."""
        for refuses in self._filters:
            if rejection := refuses(state):
                return rejection
        return None

    def best(self, states: Sequence[NodeState]) -> NodeState:
        """Return the node of the highest score, weighted as in the default profile; the first of equals."""
        total = [self._free_share(state) for state in states]
        for weight, scorer in self._scorers:
            scores = [scorer(state) for state in states]
            least, span = min(scores), max(scores) - min(scores)
            for n, score in enumerate(scores):
                total[n] += weight * BEST * (score - least) / span if span else 0
        return states[total.index(max(total))]

    def _among_the_named(self, state: NodeState) -> Rejection | None:
        if self._named is None or state.name in self._named:
            return None
        return Rejection(("node(s) didn't satisfy plugin(s) [NodeAffinity]",))

    def _unschedulable(self, state: NodeState) -> Rejection | None:
        if not state.node["spec"].get("unschedulable") or tolerated(UNSCHEDULABLE, self._spec):
            return None
        return Rejection(("node(s) were unschedulable",))

    def _untolerated(self, state: NodeState) -> Rejection | None:
        if intolerable(state.node, self._spec, ("NoSchedule", "NoExecute")):
            return Rejection(("node(s) had untolerated taint(s)",))
        return None

    def _unselected(self, state: NodeState) -> Rejection | None:
        if selector_fits(self._spec, state.node):
            return None
        return Rejection(("node(s) didn't match Pod's node affinity/selector",))

    def _short(self, state: NodeState) -> Rejection | None:
        offered, used = state.offered, state.used
        over = [n for n, asked in self._asked.items() if asked and asked + used[n] > offered.get(n, 0)]
        if not over:
            return None
        over.sort(key=lambda name: name != "pods")
        never = any(self._asked[name] > offered.get(name, 0) for name in over)
        short = ("Too many pods" if name == "pods" else f"Insufficient {name}" for name in over)
        return Rejection(tuple(short), resolvable=not never)

    def _free_share(self, state: NodeState) -> float:
        """Score the node by the share of CPU and memory that would stay free: emptier is better."""
        totals = ((name, state.offered.get(name, 0)) for name in ("cpu", "memory"))
        left = [1 - (state.used[n] + self._asked.get(n, 0)) / total for n, total in totals if total]
        return BEST * sum(left) / len(left) if left else 0.0

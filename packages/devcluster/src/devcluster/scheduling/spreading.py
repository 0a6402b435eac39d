"""Pod affinity, anti-affinity and topology spread: which pods must be near or far from others. Pure.

A domain is all nodes that share a value of a label, the topology key. Counts that all nodes share are made once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from devcluster.resources import Obj
from devcluster.scheduling.fitting import NodeState, Rejection, selector_fits, tolerated
from devcluster.values.selectors import match_labels

NEAR_NOBODY = "node(s) didn't match pod affinity rules"
NEAR_UNWANTED = "node(s) didn't match pod anti-affinity rules"
UNWANTED_THERE = "node(s) didn't satisfy existing pods anti-affinity rules"
UNEVEN = "node(s) didn't match pod topology spread constraints"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Domain = tuple[str, str]
NamespaceLabels = Callable[[str], dict[str, str]]


def terms(pod: Obj, kind: str, when: str) -> list[Obj]:
    found = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(when)
    return found or []


def heeds_others(pod: Obj) -> bool:
    """Return True if the arrival of another pod can make a place for this one."""
    spread = pod["spec"].get("topologySpreadConstraints")
    return bool(spread or terms(pod, "podAffinity", REQUIRED))


def _labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _means(term: Obj, owner: Obj, other: Obj, labels_of: NamespaceLabels) -> bool:
    """Return True if a term of `owner` selects `other`."""
    namespace = other["metadata"]["namespace"]
    chosen, by_label = term.get("namespaces") or [], term.get("namespaceSelector")
    if not chosen and by_label is None:
        chosen = [owner["metadata"]["namespace"]]
    there = namespace in chosen or (by_label is not None and match_labels(by_label, labels_of(namespace)))
    return there and match_labels(term.get("labelSelector"), _labels(other))


class Neighbours:
    """Pod affinity and anti-affinity of one pod, against all placed pods."""

    def __init__(self, pod: Obj, states: Sequence[NodeState], labels_of: NamespaceLabels):
        self._pod, self._labels_of = pod, labels_of
        self._near = terms(pod, "podAffinity", REQUIRED)
        self._far = terms(pod, "podAntiAffinity", REQUIRED)
        self._near_domains = [self._domains(term, states) for term in self._near]
        self._far_domains = [self._domains(term, states) for term in self._far]
        self._kept_off = self._domains_of_others(states)
        self._wishes: Counter[Domain] = Counter()
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for wish in terms(pod, kind, PREFERRED):
                for domain, pods in self._domains(wish["podAffinityTerm"], states).items():
                    self._wishes[domain] += sign * wish["weight"] * pods

    def _domains(self, term: Obj, states: Sequence[NodeState]) -> Counter[Domain]:
        """Return how many pods each domain has that the term selects."""
        key, found = term["topologyKey"], Counter[Domain]()
        for state in states:
            if key in state.labels:
                pods = sum(_means(term, self._pod, other, self._labels_of) for other in state.pods.values())
                found[key, state.labels[key]] += pods
        return +found

    def _domains_of_others(self, states: Sequence[NodeState]) -> set[Domain]:
        """Return the domains that placed pods keep free of this pod."""
        return {
            (term["topologyKey"], state.labels[term["topologyKey"]])
            for state in states
            for other in state.repelling.values()
            for term in terms(other, "podAntiAffinity", REQUIRED)
            if term["topologyKey"] in state.labels and _means(term, other, self._pod, self._labels_of)
        }

    def rejection(self, state: NodeState) -> Rejection | None:
        if self._near and not self._is_near(state):
            return Rejection((NEAR_NOBODY,))
        for term, domains in zip(self._far, self._far_domains, strict=True):
            if domains[term["topologyKey"], state.labels.get(term["topologyKey"], "")]:
                return Rejection((NEAR_UNWANTED,), resolvable=True)
        if any(state.labels.get(key) == value for key, value in self._kept_off):
            return Rejection((UNWANTED_THERE,), resolvable=True)
        return None

    def _is_near(self, state: NodeState) -> bool:
        if any(term["topologyKey"] not in state.labels for term in self._near):
            return False
        if all(
            domains[term["topologyKey"], state.labels[term["topologyKey"]]]
            for term, domains in zip(self._near, self._near_domains, strict=True)
        ):
            return True
        # The first of a group of pods that attract each other has no pod to join.
        return not any(self._near_domains) and all(
            _means(term, self._pod, self._pod, self._labels_of) for term in self._near
        )

    def score(self, state: NodeState) -> int:
        return sum(n for (key, value), n in self._wishes.items() if state.labels.get(key) == value)


class Spread:
    """Topology spread constraints of one pod."""

    def __init__(self, pod: Obj, states: Sequence[NodeState]):
        self._pod = pod
        self._constraints = pod["spec"].get("topologySpreadConstraints") or []
        hard = self._of("DoNotSchedule")
        self._counts = [(c, self._count(c, states, hard)) for c in hard]
        soft = self._of("ScheduleAnyway")
        self._soft_counts = [(c, self._count(c, states, soft)) for c in soft]

    def _of(self, kind: str) -> list[Obj]:
        return [c for c in self._constraints if c["whenUnsatisfiable"] == kind]

    def _count(self, constraint: Obj, states: Iterable[NodeState], all_of: list[Obj]) -> dict[str, int]:
        """Return how many of the selected pods are in each domain of the counted nodes."""
        counts: dict[str, int] = {}
        for state in states:
            if self._counts_for(constraint, state, all_of):
                value = state.labels[constraint["topologyKey"]]
                meant = sum(self._means(constraint, other) for other in state.pods.values())
                counts[value] = counts.get(value, 0) + meant
        return counts

    def _counts_for(self, constraint: Obj, state: NodeState, all_of: list[Obj]) -> bool:
        if any(c["topologyKey"] not in state.labels for c in all_of):
            return False
        spec = self._pod["spec"]
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not selector_fits(spec, state.node):
            return False
        if constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore":
            return True
        taints = state.node["spec"].get("taints") or []
        return all(tolerated(t, spec) for t in taints if t["effect"] in ("NoSchedule", "NoExecute"))

    def _means(self, constraint: Obj, other: Obj) -> bool:
        if other["metadata"]["namespace"] != self._pod["metadata"]["namespace"]:
            return False
        if "deletionTimestamp" in other["metadata"]:
            return False
        mine, theirs = _labels(self._pod), _labels(other)
        same = all(mine.get(k) == theirs.get(k) for k in constraint.get("matchLabelKeys") or [] if k in mine)
        return same and match_labels(constraint.get("labelSelector"), theirs)

    def rejection(self, state: NodeState) -> Rejection | None:
        for constraint, counts in self._counts:
            value = state.labels.get(constraint["topologyKey"])
            if value is None:
                return Rejection((f"{UNEVEN} (missing required label)",))
            enough = len(counts) >= constraint.get("minDomains", 1)
            fewest = min(counts.values(), default=0) if enough else 0
            joining = 1 if match_labels(constraint.get("labelSelector"), _labels(self._pod)) else 0
            if counts.get(value, 0) + joining - fewest > constraint["maxSkew"]:
                return Rejection((UNEVEN,), resolvable=True)
        return None

    def score(self, state: NodeState) -> int:
        """Score the node: emptier domains are better."""
        return -sum(
            counts.get(state.labels.get(constraint["topologyKey"], ""), 0)
            for constraint, counts in self._soft_counts
        )

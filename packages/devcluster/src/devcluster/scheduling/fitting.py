"""Fit of a pod and a node: selectors, affinity terms, taints. Pure."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from devcluster.gpus import HAMI_MANAGED, HAMI_REGISTER
from devcluster.resources import Obj
from devcluster.values.quantity import milli


@dataclass
class NodeState:
    """Node, the total requests of its pods in thousandths, and those pods by uid."""

    node: Obj
    used: Counter[str] = field(default_factory=Counter)
    pods: dict[str, Obj] = field(default_factory=dict)
    repelling: dict[str, Obj] = field(default_factory=dict)
    """Those of the pods that want certain others to stay away."""
    _offered: dict[str, int] = field(default_factory=dict)
    _read: Obj | None = None

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        return self.node["metadata"].get("labels") or {}

    @property
    def offered(self) -> dict[str, int]:
        """Allocatable resources in thousandths; parsed again only if the node changed."""
        if self._read is not self.node:
            allocatable = self.node["status"].get("allocatable") or {}
            self._offered = {name: milli(value) for name, value in allocatable.items()}
            if HAMI_REGISTER in (self.node["metadata"].get("annotations") or {}):
                self._offered |= dict.fromkeys(HAMI_MANAGED, sys.maxsize)
            self._read = self.node
        return self._offered


@dataclass(frozen=True)
class Rejection:
    """Reasons why one node refuses the pod; `resolvable` if the removal of other pods could help."""

    reasons: tuple[str, ...]
    resolvable: bool = False


def _int(text: str) -> int | None:
    """Parse an integer as Go's ParseInt does: no spaces, no underscores, 64 bits."""
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


def _expression_fits(expression: Obj, values: dict[str, str]) -> bool:
    key, operator, wanted = expression["key"], expression["operator"], expression.get("values") or []
    if operator == "Exists":
        return key in values
    if operator == "DoesNotExist":
        return key not in values
    if operator == "In":
        return values.get(key) in wanted
    if operator == "NotIn":
        return values.get(key) not in wanted
    if operator in ("Gt", "Lt") and key in values and len(wanted) == 1:
        # Both sides are parsed as integers; a value such as "40.5" never matches.
        have, bound = _int(values[key]), _int(str(wanted[0]))
        if have is None or bound is None:
            return False
        return have > bound if operator == "Gt" else have < bound
    return False


def term_fits(term: Obj, node: Obj) -> bool:
    labels = node["metadata"].get("labels") or {}
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(_expression_fits(e, labels) for e in expressions) and all(
        _expression_fits(f, name) for f in fields
    )


def _node_affinity(spec: Obj) -> Obj:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}


def selector_fits(spec: Obj, node: Obj) -> bool:
    """Return True if nodeSelector and required node affinity select the node."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    required = _node_affinity(spec).get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_fits(t, node) for t in required.get("nodeSelectorTerms", []))


def preference(spec: Obj, node: Obj) -> int:
    """Return the sum of the weights of the preferred terms that the node meets."""
    wishes = _node_affinity(spec).get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return sum(w["weight"] for w in wishes if term_fits(w["preference"], node))


def tolerated(taint: Obj, spec: Obj) -> bool:
    for toleration in spec.get("tolerations") or []:
        if toleration.get("effect") not in (None, "", taint["effect"]):
            continue
        key, operator = toleration.get("key"), toleration.get("operator", "Equal")
        if not key and operator == "Exists":
            return True
        if key == taint["key"] and (
            operator == "Exists" or toleration.get("value", "") == taint.get("value", "")
        ):
            return True
    return False


def intolerable(node: Obj, spec: Obj, effects: Sequence[str]) -> list[Obj]:
    """Return the node's taints of these effects that the pod does not tolerate."""
    taints = node["spec"].get("taints") or []
    return [taint for taint in taints if taint["effect"] in effects and not tolerated(taint, spec)]


def named_nodes(spec: Obj) -> set[str] | None:
    """Return the node names that required affinity lists; None if any term names no node."""
    required = _node_affinity(spec).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names: set[str] = set()
    for term in required.get("nodeSelectorTerms") or []:
        named = [f for f in term.get("matchFields") or [] if f["operator"] == "In"]
        if not named:
            return None
        names |= set.intersection(*(set(f["values"]) for f in named))
    return names or None

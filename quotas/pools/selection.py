"""Selection of a pool's nodes: by their labels, in the terms of Kubernetes' own node affinity.

The same terms stand in the affinity of every pod of the pool, and are evaluated here as the scheduler does. So the
nodes that admission counts on and the nodes where pods may go can never disagree.

Labels are those of GPU Feature Discovery, which has none for ECC: that one is Berth's own. The room above puts it on
the node from the agent's report, or an admin does: a pod cannot ask for a label that no node carries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusters.models import Node
from clusters.nodes.node_labels import MAJOR, MEMORY_MIB, MINOR, PRODUCT
from quotas import sharing
from quotas.models import Pool

ECC = "berth.dev/gpu.ecc"

WHOLE = "nvidia.com/gpu"
CAPABILITY = re.compile(r"[1-9][0-9]?(\.[0-9]{1,2})?\Z")  # 8.6, or 9
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
MOST = 2**63


@dataclass(frozen=True)
class Expression:
    """A requirement on a node's labels."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values  # a node without the label, too
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        has, bound = whole_number(labels.get(self.key, "")), whole_number(self.values[0])
        if has is None or bound is None:
            return False
        return has > bound if self.operator == "Gt" else has < bound

    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return manifest | ({"values": list(self.values)} if self.values else {})


Term = tuple[Expression, ...]  # all of them
Terms = tuple[Term, ...]  # any of them; none at all: every node


def whole_number(text: str) -> int | None:
    """Parse a number as Go does. Python would take spaces, underscores and more than 64 bits as well."""
    if not WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -MOST <= number < MOST else None


def terms(pool: Pool) -> Terms:
    """Return the terms that a node of the pool must match."""
    always = [Expression(key, "In", (value,)) for key, value in sorted(pool.node_labels.items())]
    if pool.match_product:
        always.append(Expression(PRODUCT, "In", product_names(pool)))
    if pool.match_gpu_memory_mib:
        always.append(Expression(MEMORY_MIB, "Gt", (str(pool.match_gpu_memory_mib - 1),)))
    if pool.match_ecc is not None:
        always.append(Expression(ECC, "In", ("true" if pool.match_ecc else "false",)))
    either = at_least(pool.match_compute_capability) if pool.match_compute_capability else ((),)
    return tuple(term for more in either if (term := (*always, *more)))


def plain_product(label: str) -> str:
    """Return the product alone, without how its node cuts it."""
    return re.sub(r"(-MIG-[^-]+(-me)?)?(-SHARED)?\Z", "", label)


def product_names(pool: Pool) -> tuple[str, ...]:
    """Return the product labels of the pool's nodes.

    GPU Feature Discovery appends how a node cuts a product, unless the resource's name says so. So a pool of whole GPUs
    has no node whose `nvidia.com/gpu` are replicas or instances, and the reverse.
    """
    product, named_by_resource = pool.match_product, pool.resource_name != WHOLE
    if named_by_resource or product != plain_product(product):
        return (product,)
    return sharing.of(pool).product_labels(pool)


def at_least(capability: str) -> Terms:
    """Return terms for two labels as one number: a higher major one, or the same and a minor one as high."""
    major, _, minor = capability.partition(".")
    if int(minor or 0) == 0:
        return ((Expression(MAJOR, "Gt", (str(int(major) - 1),)),),)
    same = (Expression(MAJOR, "In", (major,)), Expression(MINOR, "Gt", (str(int(minor) - 1),)))
    return ((Expression(MAJOR, "Gt", (major,)),), same)


def chooses(chosen_by: Terms, labels: Mapping[str, str]) -> bool:
    return not chosen_by or any(all(one.matches(labels) for one in term) for term in chosen_by)


def members(pool: Pool, nodes: Iterable[Node]) -> list[Node]:
    """Return the pool's nodes among these, whatever state they are in."""
    return list(each_member(pool, nodes))


def each_member(pool: Pool, nodes: Iterable[Node]) -> Iterator[Node]:
    chosen_by = terms(pool)
    return (node for node in nodes if node.cluster_id == pool.cluster_id and chooses(chosen_by, node.labels))


def ecc_of(nodes: Iterable[Node]) -> bool | None:
    """Return the ECC that all nodes report; None if one reports none, or they differ."""
    said = {node.labels.get(ECC) for node in nodes}
    return {"true": True, "false": False}.get(said.pop() or "") if len(said) == 1 else None


def manifest(chosen_by: Terms) -> list[dict[str, Any]]:
    """Return the terms as a node affinity has them."""
    return [{"matchExpressions": [one.manifest() for one in term]} for term in chosen_by]

"""Nodes on which the volumes of a claim's holder can be mounted: the node affinities of their persistent volumes.

They are asked for at every pass and not kept in claims: a disk binds during a run, is given up, and a zone gets nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clusters.models import Node
from quotas.pools.selection import Expression, Terms, chooses

# Kubernetes matches a node's name by a field, all else by labels.
NAME = "metadata.name"

# Node selector of each volume of a holder, as Kubernetes writes it: {"nodeSelectorTerms": […]}.
Affinities = Sequence[Mapping[str, Any]]


def nodes_to_follow(affinities: Affinities, nodes: Iterable[Node]) -> frozenset[str] | None:
    """Return the nodes that the volumes can be mounted on; None: any.

    If there is none among `nodes`, these are the names that the volumes tell, for the reason.
    """
    if not affinities:
        return None
    wanted = [_terms(affinity) for affinity in affinities]
    suits = {
        node.name
        for node in nodes
        if all(chooses(terms, node.labels | {NAME: node.name}) for terms in wanted)
    }
    return frozenset(suits or _names(wanted))


def _names(wanted: Iterable[Terms]) -> set[str]:
    """Return what the terms tell of where the volumes are: names of nodes, or of zones."""
    expressions = (one for terms in wanted for term in terms for one in term)
    return {value for one in expressions if one.operator == "In" for value in one.values} or {"?"}


def _terms(affinity: Mapping[str, Any]) -> Terms:
    return tuple(
        tuple(
            Expression(one["key"], one["operator"], tuple(one.get("values") or ()))
            for one in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
        )
        for term in affinity.get("nodeSelectorTerms") or ()
    )

"""Nodes of a claim's members: where their pods really are, or else those that were chosen for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Member(NamedTuple):
    """Node of one member of an admitted claim, and whether its pod is there already."""

    node: str
    is_placed: bool


def members_at(chosen: Sequence[str], pods: Iterable[str]) -> list[Member]:
    """Return a node for each member. `pods`: the nodes of the claim's pods.

    A pod counts where it is, even if another node was chosen; its member is then not expected on a chosen node.
    """
    seen = list(pods)[: len(chosen)]
    coming = list(chosen)
    for node in seen:
        if node in coming:
            coming.remove(node)
    expected = coming[: len(chosen) - len(seen)]
    return [*(Member(node, True) for node in seen), *(Member(node, False) for node in expected)]

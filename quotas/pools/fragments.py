"""Fragmentation in words: enough is free for a waiting request, but no node has all of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from quotas.pools.gpu_map import amount, figure

MOST_TOLD = 8


def told(free: Collection[int], asked: Collection[int], units_per_gpu: int) -> str:
    """Return “Free: 6 GPUs, on 3 nodes: 2, 2 and 2. 1 request for 4 …”, or "" where nobody waits for that.

    `free`: units on each healthy node; `asked`: by requests that wait for one node to have enough.
    """
    on_nodes = sorted((units for units in free if units > 0), reverse=True)
    scattered = [units for units in asked if max(on_nodes, default=0) < units <= sum(on_nodes)]
    if not scattered:
        return ""
    largest = on_nodes[0]
    said = {
        "free": amount(sum(on_nodes), units_per_gpu),
        "nodes": len(on_nodes),
        "each": listed([str(figure(units, units_per_gpu)) for units in on_nodes]),
        "largest": figure(largest, units_per_gpu),
    }
    if len(on_nodes) <= MOST_TOLD:
        where = _("Free: %(free)s, on %(nodes)s nodes: %(each)s.") % said
    else:
        where = _("Free: %(free)s, on %(nodes)s nodes, with at most %(largest)s on one.") % said
    least = {"count": len(scattered), "asked": figure(min(scattered), units_per_gpu)}
    waits = ngettext(
        "%(count)s request for %(asked)s on one node waits.",
        "%(count)s requests for %(asked)s or more on one node wait.",
        len(scattered),
    )
    return f"{where} {waits % least}"


def listed(words: Sequence[str]) -> str:
    *first, last = words
    return _("%(first)s and %(last)s") % {"first": _(", ").join(first), "last": last} if first else last

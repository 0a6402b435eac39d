"""NVIDIA drivers of nodes, and what an image needs of them. A driver that is too old shows only when CUDA is used, so a
launch is refused before.

Versions come from the nodes' labels (GPU Feature Discovery), or from the agents: the room above registers these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.errors import Invalid
from clusters.models import Node
from clusters.nodes.node_labels import driver_of
from quotas.models import Pool
from quotas.pools.needs import version
from quotas.pools.selection import members

from .models import Image

Source = Callable[[UUID], Mapping[str, str]]  # driver by node of a cluster
_sources: list[Source] = []


def register(source: Source) -> None:
    _sources.append(source)


@dataclass(frozen=True)
class Drivers:
    """Nodes of a pool by their driver: too old for an image, new enough, or unknown."""

    old: tuple[str, ...] = ()  # versions, one for each such node
    new: int = 0
    unknown: int = 0

    @property
    def newest_old(self) -> str:
        return max(self.old, key=version, default="")


def sorted_by(least: str, found: Iterable[str]) -> Drivers:
    """Sort the nodes' drivers, "" for an unknown one, by what is needed."""
    known = list(found)
    old = tuple(one for one in known if one and version(one) < version(least))
    unknown = known.count("")
    return Drivers(old, len(known) - len(old) - unknown, unknown)


def look(image: Image, pool: Pool, nodes: Iterable[Node] | None = None) -> Drivers:
    """Return how the pool's nodes suit the image. No query for an image or pool without such needs.

    `nodes`: those of the pool, if they were already read.
    """
    if not image.least_driver or not pool.has_gpus:
        return Drivers()
    if nodes is None:
        nodes = members(
            pool, Node.objects.filter(cluster=pool.cluster_id).only("cluster_id", "name", "labels")
        )
    told = {name: driver for source in _sources for name, driver in source(pool.cluster_id).items()}
    return sorted_by(image.least_driver, (told.get(node.name) or driver_of(node.labels) for node in nodes))


def refuse_too_old(image: Image, pool: Pool, units: int, nodes: Iterable[Node] | None = None) -> Drivers:
    """Raise Invalid if no node of the pool has, or may have, a driver that is new enough; else return the drivers."""
    drivers = look(image, pool, nodes) if units else Drivers()
    if not drivers.old or drivers.new or drivers.unknown:
        return drivers
    text = _(
        "%(image)s needs NVIDIA driver %(least)s or newer. The nodes of %(pool)s have %(newest)s at most."
    ) % {
        "image": image.name,
        "least": image.least_driver,
        "pool": pool.name,
        "newest": drivers.newest_old,
    }
    hint = _("Choose another image or pool, or ask an admin to update the driver.")
    raise Invalid("driver_too_old", text, hint, fields={"image": [text]})


def warning(image: Image, pool: Pool, drivers: Drivers) -> str:
    """Return a sentence if some nodes of the pool are too old for the image, else ""."""
    if not drivers.old:
        return ""
    count = len(drivers.old)
    return ngettext(
        "%(count)s node of %(pool)s has an NVIDIA driver older than %(least)s: %(image)s may not find its GPU there.",
        "%(count)s nodes of %(pool)s have an NVIDIA driver older than %(least)s: %(image)s may not find its GPU there.",
        count,
    ) % {"count": count, "pool": pool.name, "least": image.least_driver, "image": image.name}

"""Requirements on a GPU, and what a pool's GPUs cost, so that the cheapest sufficient pool comes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from clusters.models import Node
from quotas.models import Pool
from quotas.pools.selection import ecc_of, members


@dataclass(frozen=True, kw_only=True)
class GpuAsked:
    """Minimum for a GPU; the memory is that of one unit, as one program sees it."""

    min_memory_mib: int | None = None
    min_compute_capability: str | None = None
    ecc: bool | None = None
    product: str | None = None


def fitting(pools: Iterable[Pool], asked: GpuAsked) -> list[Pool]:
    """Return the pools that meet the requirements. One query, only if they include ECC."""
    pools = list(pools)
    ecc = known_ecc(pools) if asked.ecc is not None else {}
    return [pool for pool in pools if fits(pool, asked, ecc.get(pool.pk))]


def known_ecc(pools: Iterable[Pool]) -> dict[UUID, bool | None]:
    """Return ECC by pool: as the pool states or chooses it, or else as all of its nodes have it."""
    pools = list(pools)
    silent = {pool.cluster_id for pool in pools if pool.has_gpus and _said_ecc(pool) is None}
    nodes = list(Node.objects.filter(cluster__in=silent).only("cluster_id", "labels")) if silent else []
    return {
        pool.pk: known_ecc_of(pool, members(pool, nodes) if pool.cluster_id in silent else [])
        for pool in pools
    }


def known_ecc_of(pool: Pool, nodes: Iterable[Node]) -> bool | None:
    """Return ECC of one pool with these nodes."""
    said = _said_ecc(pool)
    return ecc_of(nodes) if pool.has_gpus and said is None else said


def _said_ecc(pool: Pool) -> bool | None:
    return pool.match_ecc if pool.ecc is None else pool.ecc


def fits(pool: Pool, asked: GpuAsked, ecc_of_nodes: bool | None = None) -> bool:
    """Return True if what the pool states, or else selects by, is enough. Unknown values are not enough."""
    ecc = ecc_of_nodes if _said_ecc(pool) is None else _said_ecc(pool)
    capability = pool.compute_capability or pool.match_compute_capability
    product = (pool.gpu_product or pool.match_product).lower()
    return (
        pool.has_gpus
        and unit_memory_mib(pool) >= (asked.min_memory_mib or 0)
        and version(capability) >= version(asked.min_compute_capability or "")
        and (asked.ecc is None or ecc == asked.ecc)
        and (not asked.product or asked.product.lower().replace(" ", "-") in product)
    )


def unit_memory_mib(pool: Pool) -> int:
    """Return MiB; 0 if unknown."""
    return pool.unit_memory_mib or pool.gpu_memory_mib or pool.match_gpu_memory_mib or 0


def price(pool: Pool, units: int) -> Fraction:
    """Return the price of an hour of so many units against budgets: weighted GPU-hours."""
    return Fraction(pool.weight) * pool.gpus(units)


def cheapest_first(pool: Pool) -> tuple[Fraction, int, str]:
    """Return a key to sort pools by: what a unit costs, then the smaller unit."""
    return price(pool, 1), unit_memory_mib(pool), pool.slug


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())

"""A GPU by what it must have at least, and what a pool's GPUs cost, so that the cheapest that is enough comes first."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from quotas.models import Pool


@dataclass(frozen=True, kw_only=True)
class GpuAsked:
    """Find me a GPU with at least this; the memory is that of one unit, as one program sees it."""

    min_memory_mib: int | None = None
    min_compute_capability: str | None = None
    ecc: bool | None = None
    product: str | None = None


def fits(pool: Pool, asked: GpuAsked) -> bool:
    """By what the pool says of its GPUs, or else by what it chooses them for. What nobody has said is not enough."""
    ecc = pool.match_ecc if pool.ecc is None else pool.ecc
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
    """0 where it is not known."""
    return pool.unit_memory_mib or pool.gpu_memory_mib or pool.match_gpu_memory_mib or 0


def price(pool: Pool, units: int) -> Fraction:
    """What an hour of so many units counts against budgets: weighted GPU-hours."""
    return Fraction(pool.weight) * pool.gpus(units)


def cheapest_first(pool: Pool) -> tuple[Fraction, int, str]:
    """A key to sort pools by: what a unit costs, then the smaller one."""
    return price(pool, 1), unit_memory_mib(pool), pool.slug


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())

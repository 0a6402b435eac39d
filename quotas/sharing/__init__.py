"""Ways in which a pool cuts a GPU: one small strategy for each, all pure.

A strategy turns a request (GPUs, GPU memory) into a portion in whole units. It describes what a pool can give, what a
pod must request to get its portion, and what neighbours on the same GPU can do.
"""

from __future__ import annotations

from collections.abc import Callable

from quotas.models import Pool, Sharing

from .by_units import Exclusive
from .found import Found, found_on
from .gpu_manager import GpuManager
from .hami import Hami
from .mig import Mig
from .replicas import Mps, TimeSlicing
from .strategy import NoGpus, PodParts, Portion, Strategy

__all__ = ["STRATEGIES", "Found", "PodParts", "Portion", "Strategy", "found_on", "kinds_where", "of", "pod"]

STRATEGIES: dict[Sharing, Strategy] = {
    Sharing.EXCLUSIVE: Exclusive(),
    Sharing.MIG: Mig(),
    Sharing.TIME_SLICING: TimeSlicing(),
    Sharing.MPS: Mps(),
    Sharing.HAMI: Hami(),
    Sharing.GPU_MANAGER: GpuManager(),
}
WITHOUT = NoGpus()


def of(pool: Pool) -> Strategy:
    return STRATEGIES[Sharing(pool.sharing)] if pool.has_gpus else WITHOUT


def kinds_where(holds: Callable[[Strategy], bool]) -> list[Sharing]:
    """Return the kinds, for queries, whose strategies are such."""
    return [kind for kind, strategy in STRATEGIES.items() if holds(strategy)]


def pod(pool: Pool, portion: Portion) -> PodParts:
    """Return how a pod requests its portion. A pod without GPUs must not see any GPU of its node."""
    return (of(pool) if portion.units else WITHOUT).pod(pool, portion)

"""Three weeks of an institute: 8 tenants, 200 GPUs of three kinds, 10,000 runs.

96 A100 on 12 nodes, 64 L40S on 16, 40 T4 on 10, each T4 cut into four time-slices. On each pool people request 87% of
what it could do; a tenant requests between 50% and 150% of its own quota. On the large GPUs half of the runs take one
GPU and one of eight takes a whole node. On the T4 nearly all runs take a slice, mostly for notebooks that go on long
after anybody looks at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from uuid import UUID

from .trace import Kind, Pool, Quota, Trace, made

NAMES = ("vision", "language", "speech", "robotics", "biology", "physics", "teaching", "guests")
TENANTS = {UUID(int=number): name for number, name in enumerate(NAMES, 1)}
# How much each tenant requests, as a factor of its own quota.
HUNGER = (1.5, 1.3, 1.1, 0.9, 0.9, 0.7, 0.6, 0.5)
DAYS = 21
LOAD = 0.87


def everyday(seed: int = 1) -> Trace:
    random = Random(seed)
    pools = (
        made(random, A100, _kinds(A100, (2_400, LARGE, 3), (1_000, SMALL, 4)), load=LOAD, days=DAYS),
        made(random, L40S, _kinds(L40S, (2_000, MEDIUM, 3), (1_200, SMALL, 4)), load=LOAD, days=DAYS),
        made(random, T4, _kinds(T4, (1_000, SLICES, 3), (2_400, SLICES, 5)), load=LOAD, days=DAYS),
    )
    return Trace("everyday", TENANTS, pools, DAYS)


def quotas(nominal: Sequence[int], *, per_gpu: int = 1) -> Mapping[UUID, Quota]:
    """Return quotas: a tenant may borrow its own quota again plus 8 GPUs, and a large one has a larger weight."""
    return {
        tenant: Quota(own * per_gpu, (own + 8) * per_gpu, weight=2 if own >= 12 else 1)
        for tenant, own in zip(TENANTS, nominal, strict=True)
    }


A100 = Pool("A100", 12, 8, 1, quotas((20, 20, 12, 12, 8, 8, 8, 8)))
L40S = Pool("L40S", 16, 4, 1, quotas((12, 12, 12, 8, 8, 4, 4, 4)))
T4 = Pool("T4 in slices", 10, 16, 4, quotas((6, 6, 4, 4, 4, 4, 8, 4), per_gpu=4))
LARGE = {1: 0.35, 2: 0.25, 4: 0.22, 8: 0.18}
MEDIUM = {1: 0.45, 2: 0.35, 4: 0.2}
SMALL = {1: 0.9, 2: 0.1}
SLICES = {1: 0.75, 2: 0.15, 4: 0.1}


def _kinds(pool: Pool, *kinds: tuple[int, Mapping[int, float], float]) -> list[Kind]:
    """Return batch work, two thirds of it with a lifetime, and notebooks, one fifth of them with a lifetime."""
    asked = {
        tenant: quota.nominal * hunger
        for (tenant, quota), hunger in zip(pool.quotas.items(), HUNGER, strict=True)
    }
    return [
        Kind(runs, asked, units, median_hours, gives_lifetime=gives_lifetime)
        for (runs, units, median_hours), gives_lifetime in zip(kinds, (0.65, 0.2), strict=True)
    ]

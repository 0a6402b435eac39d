"""A pass over a queue: 1,000 wait, 500 nodes with 2,000 GPUs, 20 tenants, bookings and borrowed GPUs; the median"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median
from uuid import UUID

from quotas.scheduling import Booked, NodeState, PoolState, Room, Run, TenantQuota, Waiting, decide
from tests.bench import Figure

TIMES = 7
POOLS: dict[str, dict[str, float]] = {
    "a full pool, every fifth lifetime unknown": {"occupied": 1.0, "endless": 0.2},
    "a full pool, no lifetime known": {"occupied": 1.0, "endless": 1.0},
    "a pool half in use": {"occupied": 0.6, "endless": 0.2},
    "an empty pool": {"occupied": 0.0, "endless": 0.2},
}


def measure() -> Iterator[Figure]:
    for what, how in POOLS.items():
        state = made_queue(occupied=how["occupied"], endless=how["endless"])
        yield Figure(f"deciding alone: {what}", _median_ms(state), "ms")


def _median_ms(state: PoolState) -> float:
    taken = []
    for _run in range(TIMES):
        began = time.process_time()
        decide(state)
        taken.append((time.process_time() - began) * 1000)
    return median(taken)


# --- The queue


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TENANTS = [UUID(int=number) for number in range(1, 21)]
NODES, GPUS_EACH, WAITING = 500, 4, 1000
NOMINAL, MAY_BORROW = 80, 60
# Sizes and lifetimes (in hours) as people are offered them.
GPUS = (1, 1, 1, 1, 2, 2, 4)
CPU_EACH = (4_000, 8_000)
MEMORY_EACH_MIB = (16_384, 32_768)
LIFETIMES = (1, 4, 8, 8, 12, 24, 72)
WHOLE = Room(GPUS_EACH, 64_000, 256 * 1024, 110)


def made_queue(*, occupied: float, endless: float, seed: int = 1) -> PoolState:
    """Return a pool with these shares (0 to 1) of GPUs in use and of runs and requests without a lifetime."""
    random = Random(seed)
    used = dict.fromkeys(TENANTS, 0)
    nodes = tuple(_node(random, number, used, occupied, endless) for number in range(NODES))
    tenants = {
        tenant: TenantQuota(
            used_units=held,
            limit_units=max(NOMINAL + MAY_BORROW, held),
            nominal_units=NOMINAL,
            weight=random.choice((1, 1, 2)),
            past_use=random.random() * 5_000_000,
        )
        for tenant, held in used.items()
    }
    waiting = tuple(_waiting(random, number, endless) for number in range(WAITING))
    bookings = tuple(_booking(random, number) for number in range(20))
    return PoolState(1, nodes, waiting, tenants, NOW, bookings=bookings)


def _node(random: Random, number: int, used: dict[UUID, int], occupied: float, endless: float) -> NodeState:
    free, runs = WHOLE, []
    while free.units and random.random() < occupied:
        takes = _need(random, free.units)
        # Some tenants use much more than their quota, others less.
        tenant = TENANTS[min(int(random.expovariate(1.8) * len(TENANTS) / 2), len(TENANTS) - 1)]
        began = NOW - timedelta(minutes=random.randrange(1, 72 * 60))
        ends = None if random.random() < endless else NOW + timedelta(minutes=random.randrange(1, 48 * 60))
        runs.append(Run(UUID(int=random.getrandbits(128)), tenant, random.randrange(500), takes, began, ends))
        used[tenant] += takes.units
        free -= takes
    return NodeState(f"gpu-{number}", free, WHOLE, tuple(runs))


def _waiting(random: Random, number: int, endless: float) -> Waiting:
    lasts = None if random.random() < endless else timedelta(hours=random.choice(LIFETIMES))
    tenant = random.choice(TENANTS)
    claim, user = UUID(int=random.getrandbits(128)), random.randrange(500)
    return Waiting(claim, tenant, _need(random), 0, number, user=user, lasts=lasts)


def _need(random: Random, most: int = GPUS_EACH) -> Room:
    gpus = min(random.choice(GPUS), most)
    return Room(gpus, gpus * random.choice(CPU_EACH), gpus * random.choice(MEMORY_EACH_MIB), 1)


def _booking(random: Random, number: int) -> Booked:
    starts = NOW + timedelta(minutes=random.randrange(-60, 72 * 60))
    ends = starts + timedelta(hours=random.choice((2, 4, 8)))
    return Booked(UUID(int=1000 + number), random.choice(TENANTS), starts, ends, random.randrange(1, 11), 1)

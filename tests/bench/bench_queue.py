"""A pass over a queue: 1,000 wait, 500 nodes with 2,000 GPUs, 20 tenants, bookings and borrowed GPUs; the median"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from quotas.scheduling import PoolState, decide
from tests.bench import Figure
from tests.bench.helpers.queues import made_queue

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

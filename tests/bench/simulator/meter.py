"""Use of a pool's units over time, and each tenant's fair part of them.

The fair part at a moment: each tenant gets what it requests up to its own quota. The rest is divided by weight among
tenants that request more, and no tenant gets more than it requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from quotas.scheduling import Waiting
from tests.bench.simulator.trace import DAY, Pool


class Meter:
    """Meter from the second day to the last request, so that the filling and the emptying do not count."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.begins, self.ends = DAY, max((job.at for job in pool.jobs), default=0.0)
        self.got = dict.fromkeys(pool.quotas, 0.0)
        self.fair = dict.fromkeys(pool.quotas, 0.0)
        self.got_of_fair = dict.fromkeys(pool.quotas, 0.0)
        self.capacity = 0.0
        self._since = 0.0
        self._used: Mapping[UUID, int] = dict.fromkeys(pool.quotas, 0)
        self._fair: Mapping[UUID, float] = dict.fromkeys(pool.quotas, 0.0)
        self._capacity = pool.units

    def until(self, then: float) -> None:
        seconds = min(then, self.ends) - max(self._since, self.begins)
        self._since = then
        if seconds <= 0:
            return
        self.capacity += self._capacity * seconds
        for tenant, used in self._used.items():
            self.got[tenant] += used * seconds
            self.fair[tenant] += self._fair[tenant] * seconds
            self.got_of_fair[tenant] += min(used, self._fair[tenant]) * seconds

    def now_is(self, used: Mapping[UUID, int], waiting: Iterable[Waiting], capacity: int) -> None:
        asked = dict(used)
        for claim in waiting:
            asked[claim.tenant] += claim.need.units
        self._used, self._capacity = dict(used), capacity
        self._fair = fair_parts(self.pool, asked, capacity)


def fair_parts(pool: Pool, asked: Mapping[UUID, int], capacity: int) -> Mapping[UUID, float]:
    own = {tenant: min(asked[tenant], quota.nominal) for tenant, quota in pool.quotas.items()}
    scale = min(1.0, capacity / max(1, sum(own.values())))
    parts = {tenant: units * scale for tenant, units in own.items()}
    left = capacity - sum(parts.values())
    hungry = {tenant for tenant in parts if asked[tenant] > own[tenant]}
    while hungry and left > 1e-9:
        weights = sum(pool.quotas[tenant].weight for tenant in hungry)
        each = left / weights
        sated = {
            tenant for tenant in hungry if asked[tenant] - parts[tenant] <= each * pool.quotas[tenant].weight
        }
        for tenant in sated or hungry:
            more = min(asked[tenant] - parts[tenant], each * pool.quotas[tenant].weight)
            parts[tenant] += more
            left -= more
        if not sated:
            break
        hungry -= sated
    return parts

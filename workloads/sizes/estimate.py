"""Forecast for a launch, and alternatives that would start now: for the launch form and `POST estimate/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any
from uuid import UUID

from accounts.models import Tenant, User
from quotas import sharing
from quotas.estimates import Estimate, Estimator, Needs
from quotas.models import Claim, Flavor
from quotas.pools.nodes import PoolNodes

from .sizing import Size

MOST_ALTERNATIVES = 3
# Lifetimes to offer: a shorter run may end before something that is kept for others begins.
SHORTER_MINUTES = (480, 240, 60)


@dataclass(frozen=True)
class Alternative:
    """Launch that would start now. `minutes`: with at most this lifetime; None: with the lifetime asked for."""

    size: Size
    minutes: int | None = None

    @property
    def body(self) -> dict[str, Any]:
        """Fields of a launch body, in place of those asked for."""
        asked = self.size.asked()
        body: dict[str, Any] = {} if self.minutes is None else {"max_runtime_minutes": self.minutes}
        if asked.flavor:
            return body | {"flavor": asked.flavor}
        gpus = asked.gpus or Fraction(0)
        return body | {
            "pool": self.size.pool.slug,
            "gpus": int(gpus) if gpus.denominator == 1 else round(float(gpus), 4),
            "cpu": self.size.cpu_millicores / 1000,
            "memory_mib": self.size.memory_mib,
        }


Other = tuple[Alternative, Claim]


def estimate(
    tenant: Tenant,
    user: User,
    size: Size,
    minutes: int | None = None,
    nodes: Mapping[UUID, PoolNodes] | None = None,
    needs: Mapping[UUID, Needs] | None = None,
    *,
    is_bound: bool = False,
    priority: int = 0,
    several: int = 1,
) -> tuple[Estimate, list[Alternative]]:
    """Return the forecast for this size, and alternatives if it does not start now. Writes nothing.

    `needs`: volumes that it would mount, by cluster. `is_bound`: alternatives of the same cluster only.
    `several`: on so many nodes at once, each with this size.
    """
    looks = Estimator(nodes=nodes, needs=needs)
    asked = size.asked_by(tenant, user, minutes, nodes=several, priority=priority)
    others = [
        other
        for other in _others(tenant, user, size, minutes, several=several, priority=priority)
        if not is_bound or other[1].pool.cluster_id == size.pool.cluster_id
    ]
    looks.look_at((other for _alternative, other in others), beside=[asked])
    outlook = looks.estimate(asked, with_times=True)
    return outlook, [] if outlook["starts_now"] else _starting_now(looks, others)


def alternatives(
    looks: Estimator, tenant: Tenant, user: User, size: Size, minutes: int | None, holder: UUID | None = None
) -> list[Alternative]:
    """Return what would start now instead: a shorter lifetime, fewer GPUs of the same pool, or ready-made sizes.

    `holder`: the workspace that waits, whose volumes are to be followed.
    """
    others = _others(tenant, user, size, minutes, holder)
    looks.look_at(other for _alternative, other in others)
    return _starting_now(looks, others)


def _others(
    tenant: Tenant,
    user: User,
    size: Size,
    minutes: int | None,
    holder: UUID | None = None,
    several: int = 1,
    priority: int = 0,
) -> list[Other]:
    flavors = list(Flavor.objects.filter(pool__is_open=True).select_related("pool__cluster"))
    return [
        (other, other.size.asked_by(tenant, user, other.minutes or minutes, holder, several, priority))
        for other in _nearest_first(size, minutes, flavors)
    ]


def _starting_now(looks: Estimator, others: list[Other]) -> list[Alternative]:
    found = (alternative for alternative, other in others if looks.starts_now(other))
    return list(islice(_of_each_kind_once(found), MOST_ALTERNATIVES))


def _nearest_first(size: Size, minutes: int | None, flavors: list[Flavor]) -> Iterator[Alternative]:
    for shorter in SHORTER_MINUTES:
        if minutes is None or shorter < minutes:
            yield Alternative(size, shorter)
    sizes = [Size.of_flavor(flavor) for flavor in flavors if flavor != size.flavor]
    sizes += [fewer for fewer in _fewer(size) if all(fewer.portion != one.portion for one in sizes)]
    gpus = size.pool.gpus(size.units)

    def difference(other: Size) -> tuple[bool, Fraction, bool]:
        others = other.pool.gpus(other.units)
        return (other.units > 0) != (size.units > 0), abs(others - gpus), other.pool != size.pool

    for other in sorted(sizes, key=difference):
        yield Alternative(other)


def _of_each_kind_once(found: Iterator[Alternative]) -> Iterator[Alternative]:
    """Skip shorter lifetimes but the longest."""
    shorter = False
    for other in found:
        if not (other.minutes and shorter):
            yield other
        shorter = shorter or other.minutes is not None


def _fewer(size: Size) -> Iterator[Size]:
    """Yield half as many GPUs of the pool, a quarter …, CPU and memory in proportion; nothing if `cards` is set."""
    units = size.portion.units // 2
    while units and not size.portion.cards:
        part = Fraction(units, size.portion.units)
        yield Size(
            pool=size.pool,
            flavor=None,
            portion=sharing.of(size.pool).of_units(size.pool, units),
            cpu_millicores=max(1, int(size.cpu_millicores * part)),
            memory_mib=max(1, int(size.memory_mib * part)),
        )
        units //= 2

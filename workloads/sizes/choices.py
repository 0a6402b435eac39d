"""Sizes that forms offer, with what is free of each pool and what starts now, and the tenants in which a person may
use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from django.http import HttpRequest

from accounts.access import Actor
from accounts.models import Role, Tenant, User
from accounts.tenancy import roles
from quotas.estimates import Estimator
from quotas.models import Flavor, Pool
from quotas.pools.gpu_map import IN_PERCENT
from quotas.pools.nodes import PoolNodes, nodes_of
from quotas.queries import pools_for, quotas_for

from .parts import Part, parts_of
from .sizing import Size


@dataclass(frozen=True)
class PoolChoice:
    """A pool with its flavors, and what the tenant may still use of it."""

    pool: Mapping[str, Any]
    flavors: Sequence[Flavor]
    quota: Mapping[str, Any] | None
    nodes: PoolNodes
    parts: Sequence[Part] = ()
    starts_now: Flavor | None = None  # its smallest size, if that starts now

    @property
    def has_gpus(self) -> bool:
        return self.pool["sharing"] is not None

    @property
    def is_sliced(self) -> bool:
        """True if people count its slices."""
        return 1 < int(self.pool["units_per_gpu"]) < IN_PERCENT

    @property
    def memory_mib(self) -> int | None:
        """GPU memory of one unit: of a slice where a GPU is cut."""
        memory_mib: int | None = self.pool["unit_memory_mib"] or self.pool["gpu"]["memory_mib"]
        return memory_mib

    @property
    def usable(self) -> bool:
        """True if the pool has no GPUs, or the tenant has a quota in it."""
        return not self.has_gpus or bool(self.quota and self.quota["limit_gpus"])


def pool_choices(actor: Actor, tenant: Tenant) -> list[PoolChoice]:
    flavors: dict[str, list[Flavor]] = {}
    for flavor in Flavor.objects.filter(pool__is_open=True).select_related("pool__cluster"):
        flavors.setdefault(flavor.pool.slug, []).append(flavor)
    quotas = {quota["pool"]: quota for quota in quotas_for(actor) if quota["tenant"] == tenant.slug}
    pools = list(Pool.objects.select_related("cluster").filter(slug__in=flavors))
    nodes = nodes_of(pools)
    choices = [
        PoolChoice(
            told,
            flavors[pool.slug],
            quotas.get(pool.slug),
            nodes[pool.pk],
            parts_of(pool, flavors[pool.slug]),
        )
        for pool, told in zip(pools, pools_for(actor, pools, nodes), strict=True)
    ]
    return sorted(choices, key=lambda choice: (not choice.usable, not choice.has_gpus))


def with_room_first(choices: Sequence[PoolChoice], tenant: Tenant, user: User) -> list[PoolChoice]:
    """Return the choices with what starts now in each; pools in which something does come first.

    Only the smallest size of each pool is tried.
    """
    asks = {}
    for choice in choices:
        if choice.usable:
            smallest = min(choice.flavors, key=_smallest_first)
            asks[choice.pool["slug"]] = smallest, Size.of_flavor(smallest).asked_by(tenant, user)
    looks = Estimator(nodes={choice.flavors[0].pool_id: choice.nodes for choice in choices})
    looks.look_at(claim for _flavor, claim in asks.values())
    starting = {slug: flavor for slug, (flavor, claim) in asks.items() if looks.starts_now(claim)}
    found = [replace(choice, starts_now=starting.get(choice.pool["slug"])) for choice in choices]
    return sorted(found, key=lambda one: (not one.usable, one.starts_now is None, not one.has_gpus))


def best_now(choices: Sequence[PoolChoice]) -> Flavor | None:
    """Return the smallest size with a GPU that starts now, else the smallest that starts now."""
    return min(filter(None, (choice.starts_now for choice in choices)), key=_smallest_first, default=None)


def _smallest_first(flavor: Flavor) -> tuple[bool, Fraction, int]:
    return flavor.units == 0, flavor.pool.gpus(flavor.units), flavor.cpu_millicores


def launch_tenants(request: HttpRequest) -> list[Tenant]:
    """Tenants in which the person may start workspaces and jobs."""
    return [tenant for tenant, role in roles(request) if role in (Role.OWNER, Role.MEMBER)]

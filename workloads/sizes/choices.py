"""Sizes that forms offer, with what is free of each pool, and the tenants in which a person may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from accounts.access import Actor
from accounts.models import Role, Tenant
from accounts.tenancy import roles
from quotas.models import Flavor, Pool
from quotas.pools.nodes import PoolNodes, nodes_of
from quotas.queries import pools_for, quotas_for

from .parts import Part, parts_of


@dataclass(frozen=True)
class PoolChoice:
    """A pool with its flavors, and what the tenant may still use of it."""

    pool: Mapping[str, Any]
    flavors: Sequence[Flavor]
    quota: Mapping[str, Any] | None
    nodes: PoolNodes
    parts: Sequence[Part] = ()

    @property
    def has_gpus(self) -> bool:
        return self.pool["sharing"] is not None

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
    for flavor in Flavor.objects.filter(pool__is_open=True).select_related("pool"):
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


def launch_tenants(request: HttpRequest) -> list[Tenant]:
    """Tenants in which the person may start workspaces and jobs."""
    return [tenant for tenant, role in roles(request) if role in (Role.OWNER, Role.MEMBER)]

"""Suggestions of the launch form: sizes with what is free, a name, and a first launch for new people."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from accounts.access import Actor
from accounts.models import Role, Tenant
from accounts.tenancy import roles
from quotas.estimates import Estimator
from quotas.models import Flavor, Pool
from quotas.pools.nodes import PoolNodes, nodes_of
from quotas.queries import pools_for, quotas_for
from workloads.models import Image
from workloads.sizes.parts import Part, parts_of
from workloads.sizes.sizing import Size
from workspaces.models import Workspace

ADJECTIVES = (
    "amber", "brave", "bright", "calm", "clear", "cosy", "deep", "fair", "gentle", "keen", "kind", "light",
    "lucid", "mellow", "nimble", "open", "patient", "plain", "quick", "quiet", "steady", "still", "swift", "warm",
)  # fmt: skip
NOUNS = (
    "anchor", "atlas", "bay", "beacon", "breeze", "buoy", "compass", "coral", "cove", "current", "delta", "dune",
    "fjord", "harbor", "heron", "island", "lagoon", "lantern", "meadow", "pier", "reef", "sail", "shore", "tide",
)  # fmt: skip


MOST_TRIED = 3  # tenants, for a first launch


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
    """Tenants in which the person may launch, by the rule of `access.may_launch`."""
    return [tenant for tenant, role in roles(request) if role in (Role.OWNER, Role.MEMBER)]


def friendly_name(actor: Actor) -> str:
    """Two plain words that none of the person's workspaces has yet."""
    mine = Workspace.objects.filter(owner=actor.user, deleted_at__isnull=True)
    taken = set(mine.values_list("name", flat=True))
    free = [name for name in (f"{a}-{n}" for a in ADJECTIVES for n in NOUNS) if name not in taken]
    return secrets.choice(free) if free else f"workspace-{len(taken) + 1}"


def sample(actor: Actor, tenants: Sequence[Tenant]) -> dict[str, Any] | None:
    """Suggest a first launch: the smallest size with a GPU that starts now, else the smallest that starts now."""
    image = Image.objects.filter(is_active=True).first()
    flavors = list(Flavor.objects.filter(pool__is_open=True).select_related("pool__cluster"))
    flavors.sort(
        key=lambda flavor: (flavor.units == 0, flavor.pool.gpus(flavor.units), flavor.cpu_millicores)
    )
    looks = Estimator()
    for tenant in tenants[:MOST_TRIED]:
        for flavor in flavors:
            if image and looks.starts_now(Size.of_flavor(flavor).asked_by(tenant, actor.user)):
                return {
                    "once": uuid.uuid4(),
                    "tenant": tenant,
                    "image": image,
                    "flavor": flavor,
                    "name": friendly_name(actor),
                }
    return None

"""What tenants hold by their admitted claims."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

from django.db.models import Count, Q, Sum

from quotas.models import Claim
from quotas.scheduling import Limits


def held_units(tenants: set[UUID]) -> defaultdict[tuple[UUID, UUID], int]:
    """Units by tenant and pool."""
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED, tenant__in=tenants)
    rows = admitted.values_list("tenant_id", "pool_id").annotate(held=Sum("units"))
    return defaultdict(int, {(tenant, pool): held for tenant, pool, held in rows})


def held_over_all_pools(tenants: set[UUID]) -> defaultdict[UUID, Limits]:
    """What a tenant's limits are held against."""
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED, tenant__in=tenants)
    rows = admitted.values_list("tenant_id").annotate(
        cpu=Sum("cpu_millicores"),
        memory=Sum("memory_mib"),
        workspaces=Count("pk", filter=Q(holder_kind=Claim.Holder.WORKSPACE)),
    )
    return defaultdict(lambda: Limits(0, 0, 0), {tenant: Limits(*held) for tenant, *held in rows})


def held_in_pools(pools: set[UUID]) -> defaultdict[UUID, int]:
    """Units by pool, of all tenants."""
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED, pool__in=pools).order_by()
    return defaultdict(int, admitted.values_list("pool_id").annotate(held=Sum("units")))

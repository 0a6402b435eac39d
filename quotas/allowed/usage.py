"""Use of tenants and people: held now by admitted claims, and lately by the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, Q, Sum
from django.utils import timezone

from quotas.models import Claim, LedgerEntry, Pool, of_all_members
from quotas.scheduling import Limits

# Age in days at which past use counts half.
HALF_LIFE_DAYS = 7
# Older use would count less than 1 %, and is ignored.
FORGOTTEN_AFTER = timedelta(days=7 * HALF_LIFE_DAYS)


def held_by_tenants(
    tenants: set[UUID],
) -> tuple[defaultdict[tuple[UUID, UUID], int], defaultdict[UUID, Limits]]:
    """Units by tenant and pool; and CPU, memory and workspaces by tenant, to compare with its limits. One query."""
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED, tenant__in=tenants)
    rows = (
        admitted.order_by()
        .values_list("tenant_id", "pool_id")
        .annotate(
            units=Sum(of_all_members("units")),
            cpu=Sum(of_all_members("cpu_millicores")),
            memory=Sum(of_all_members("memory_mib")),
            workspaces=Count("pk", filter=Q(holder_kind=Claim.Holder.WORKSPACE)),
        )
    )
    units: defaultdict[tuple[UUID, UUID], int] = defaultdict(int)
    sums: defaultdict[UUID, list[int]] = defaultdict(lambda: [0, 0, 0])
    for tenant, pool, held, *amounts in rows:
        units[tenant, pool] = held
        sums[tenant] = [before + more for before, more in zip(sums[tenant], amounts, strict=True)]
    return units, defaultdict(
        lambda: Limits(0, 0, 0), {tenant: Limits(*held) for tenant, held in sums.items()}
    )


def held_units(tenants: set[UUID]) -> defaultdict[tuple[UUID, UUID], int]:
    """Units by tenant and pool."""
    return held_by_tenants(tenants)[0]


def held_over_all_pools(tenants: set[UUID]) -> defaultdict[UUID, Limits]:
    """CPU, memory and workspaces held by tenant, to compare with its limits."""
    return held_by_tenants(tenants)[1]


def held_in_pools(pools: set[UUID]) -> defaultdict[UUID, int]:
    """Units by pool, of all tenants."""
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED, pool__in=pools).order_by()
    return defaultdict(int, admitted.values_list("pool_id").annotate(held=Sum(of_all_members("units"))))


def held_by_people(tenants: set[UUID]) -> defaultdict[tuple[UUID, Any], tuple[Fraction, int]]:
    """GPUs (exact) and workspaces held, by tenant and person, over all pools."""
    held: defaultdict[tuple[UUID, Any], tuple[Fraction, int]] = defaultdict(lambda: (Fraction(0), 0))
    if not tenants:
        return held
    admitted = Claim.objects.filter(state=Claim.State.ADMITTED, tenant__in=tenants)
    rows = admitted.values_list("tenant_id", "user_id", "pool__units_per_gpu").annotate(
        units=Sum(of_all_members("units")),
        workspaces=Count("pk", filter=Q(holder_kind=Claim.Holder.WORKSPACE)),
    )
    for tenant, user, per_gpu, units, workspaces in rows.order_by():
        gpus, running = held[tenant, user]
        held[tenant, user] = gpus + Fraction(units, per_gpu), running + workspaces
    return held


def used_lately(pools: Iterable[Pool], tenants: set[UUID]) -> defaultdict[tuple[UUID, UUID], float]:
    """GPU-seconds used lately, by tenant and pool; older use counts less."""
    today = timezone.now().date()
    amount = ExpressionWrapper(F("microseconds") * F("units"), output_field=BigIntegerField())
    rows = (
        LedgerEntry.objects.filter(pool__in=pools, tenant__in=tenants, day__gt=today - FORGOTTEN_AFTER)
        .order_by()
        .values_list("tenant_id", "pool_id", "day", "units_per_gpu")
        .annotate(amount=Sum(amount))
    )
    used: defaultdict[tuple[UUID, UUID], float] = defaultdict(float)
    for tenant, pool, day, per_gpu, units in rows:
        used[tenant, pool] += float(units) / 1e6 / per_gpu * 0.5 ** ((today - day).days / HALF_LIFE_DAYS)
    return used

"""Reads a pool's queue, nodes and tenants from the database into what `scheduling.py` decides on."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.utils import timezone

from quotas.models import Claim, Pool, Quota, TenantLimit
from quotas.nodes import nodes_of
from quotas.scheduling import Limits, PoolState, Reason, Room, TenantQuota, Waiting
from quotas.usage import held_over_all_pools, held_units


def read(pool: Pool, claims: Iterable[Claim]) -> PoolState:
    """The state of a pool in which these claims wait. Seven queries, however many claims, tenants and nodes."""
    waiting = tuple(as_waiting(claim) for claim in claims)
    return PoolState(
        units_per_gpu=pool.units_per_gpu,
        nodes=nodes_of([pool])[pool.id].healthy,
        waiting=waiting,
        tenants=tenant_quotas(pool, {claim.tenant for claim in waiting}),
        now=timezone.now(),
        is_open=pool.is_open,
    )


def as_waiting(claim: Claim) -> Waiting:
    return Waiting(
        claim=claim.id,
        tenant=claim.tenant_id,
        need=Room(claim.units, claim.cpu_millicores, claim.memory_mib, pods=1),
        priority=claim.priority,
        place=claim.place,
        is_workspace=claim.holder_kind == Claim.Holder.WORKSPACE,
        not_before=claim.not_before,
        reason=Reason(claim.reason_code, claim.reason_data),
    )


def tenant_quotas(pool: Pool, tenants: set[UUID]) -> dict[UUID, TenantQuota]:
    """What each tenant holds and may hold. A pool without GPUs is open to all within their limits."""
    nominal = dict(
        Quota.objects.filter(pool=pool, tenant__in=tenants).values_list("tenant_id", "nominal_gpus")
    )
    limits = {
        limit.tenant_id: Limits(limit.cpu_millicores, limit.memory_mib, limit.workspaces)
        for limit in TenantLimit.objects.filter(tenant__in=tenants)
    }
    units = held_units(tenants)
    held = held_over_all_pools(tenants)
    return {
        tenant: TenantQuota(
            used_units=units[tenant, pool.id],
            limit_units=nominal.get(tenant, 0) * pool.units_per_gpu if pool.has_gpus else None,
            used=held[tenant],
            limits=limits.get(tenant, Limits()),
        )
        for tenant in tenants
    }

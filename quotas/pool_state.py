"""Reads a pool's queue, nodes and tenants from the database into what `scheduling.py` decides on."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count, Q, Sum
from django.utils import timezone

from quotas.models import Claim, Pool, Quota, TenantLimit
from quotas.nodes import PoolNodes, nodes_of
from quotas.scheduling import Limits, PoolState, Reason, Room, TenantQuota, Waiting


def read(pool: Pool, claims: Iterable[Claim], nodes: PoolNodes | None = None) -> PoolState:
    """The state of a pool in which these claims wait. Six queries, however many claims, tenants and nodes."""
    waiting = tuple(as_waiting(claim) for claim in claims)
    nodes = nodes or nodes_of([pool])[pool.id]
    return PoolState(
        units_per_gpu=pool.units_per_gpu,
        nodes=nodes.healthy,
        waiting=waiting,
        tenants=tenant_quotas(pool, {claim.tenant for claim in waiting}),
        now=timezone.now(),
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
    nominal = dict(Quota.objects.filter(pool=pool, tenant__in=tenants).values_list("tenant_id", "nominal_gpus"))
    limits = {
        limit.tenant_id: Limits(limit.cpu_millicores, limit.memory_mib, limit.workspaces)
        for limit in TenantLimit.objects.filter(tenant__in=tenants)
    }
    held = {
        row["tenant_id"]: row
        for row in Claim.objects.filter(state=Claim.State.ADMITTED, tenant__in=tenants)
        .values("tenant_id")
        .annotate(
            of_pool=Sum("units", filter=Q(pool=pool), default=0),
            cpu=Sum("cpu_millicores"),
            memory=Sum("memory_mib"),
            workspaces=Count("pk", filter=Q(holder_kind=Claim.Holder.WORKSPACE)),
        )
    }
    nothing = {"of_pool": 0, "cpu": 0, "memory": 0, "workspaces": 0}
    quotas = {}
    for tenant in tenants:
        has = held.get(tenant, nothing)
        quotas[tenant] = TenantQuota(
            used_units=has["of_pool"],
            limit_units=nominal.get(tenant, 0) * pool.units_per_gpu if pool.has_gpus else None,
            used=Limits(has["cpu"], has["memory"], has["workspaces"]),
            limits=limits.get(tenant, Limits()),
        )
    return quotas

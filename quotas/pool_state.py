"""Reads a pool's queue, nodes and tenants from the database into what `scheduling` decides on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from quotas import budgets, health
from quotas.models import Booking, Claim, Pool, Quota, TenantLimit
from quotas.nodes import nodes_of, takes
from quotas.scheduling import Booked, Limits, PersonUse, PoolState, Reason, TenantQuota, Waiting
from quotas.usage import held_by_people, held_over_all_pools, held_units, used_lately

# A run's clock starts when it is ready: until then, so long is allowed for.
START_MARGIN = timedelta(minutes=15)


def read(pool: Pool, claims: Iterable[Claim]) -> PoolState:
    """The state of a pool in which these claims wait. As many queries, however many claims, tenants and nodes."""
    now = timezone.now()
    waiting = tuple(as_waiting(claim) for claim in claims)
    seen = nodes_of([pool])[pool.id]
    nodes = seen.healthy
    bookings = booked(pool, now)
    tenants = {claim.tenant for claim in waiting} | {booking.tenant for booking in bookings}
    tenants |= {run.tenant for node in nodes for run in node.runs if run.in_pool}
    return PoolState(
        units_per_gpu=pool.units_per_gpu,
        nodes=nodes,
        waiting=waiting,
        tenants=tenant_quotas(pool, tenants, {(claim.tenant, claim.user) for claim in waiting}),
        now=now,
        is_open=pool.is_open,
        bookings=bookings,
        grace=settings.RECLAIM_GRACE,
        out=health.told(pool, seen.out),
    )


def as_waiting(claim: Claim) -> Waiting:
    return Waiting(
        claim=claim.id,
        tenant=claim.tenant_id,
        need=takes(claim),
        priority=claim.priority,
        place=claim.place,
        is_workspace=claim.holder_kind == Claim.Holder.WORKSPACE,
        not_before=claim.not_before,
        reason=Reason(claim.reason_code, claim.reason_data),
        user=claim.user_id,
        lasts=lasts(claim.max_runtime_minutes),
        returns_first=claim.returns_first,
    )


def lasts(max_runtime_minutes: int | None) -> timedelta | None:
    """How long one that asks for so much holds its units at most."""
    return None if max_runtime_minutes is None else timedelta(minutes=max_runtime_minutes) + START_MARGIN


def booked(pool: Pool, now: datetime) -> tuple[Booked, ...]:
    """The bookings of a pool that are not over."""
    rows = Booking.objects.filter(pool=pool, ends_at__gt=now, cancelled_at=None).order_by("starts_at", "pk")
    fields = ("pk", "tenant_id", "starts_at", "ends_at", "places", "units_each")
    return tuple(Booked(*row) for row in rows.values_list(*fields))


def tenant_quotas(
    pool: Pool, tenants: set[UUID], people: Collection[tuple[UUID, Any]] = ()
) -> dict[UUID, TenantQuota]:
    """What each tenant, and each of these people in them, holds and may hold.

    A pool without GPUs is open to all within their limits.
    """
    quotas = {quota.tenant_id: quota for quota in Quota.objects.filter(pool=pool, tenant__in=tenants)}
    limits = {limit.tenant_id: limit for limit in TenantLimit.objects.filter(tenant__in=tenants)}
    units = held_units(tenants)
    held = held_over_all_pools(tenants)
    lately = used_lately(pool, tenants)
    uses = _people(tenants, people, limits)
    costs = pool.has_gpus and pool.weight > 0
    blocked, blocked_people = budgets.spent({tenant for tenant, _user in people}) if costs else ({}, {})
    return {
        tenant: TenantQuota(
            used_units=units[tenant, pool.id],
            limit_units=_units(pool, quotas.get(tenant), with_borrowed=True),
            used=held[tenant],
            limits=_limits(limits.get(tenant)),
            nominal_units=_units(pool, quotas.get(tenant), with_borrowed=False),
            weight=quotas[tenant].weight if tenant in quotas else 1,
            past_use=lately[tenant],
            people=uses[tenant],
            blocked=blocked.get(tenant),
            blocked_people={user: why for (of, user), why in blocked_people.items() if of == tenant},
        )
        for tenant in tenants
    }


def _units(pool: Pool, quota: Quota | None, *, with_borrowed: bool) -> int | None:
    if not pool.has_gpus:
        return None
    if quota is None:
        return 0
    gpus = quota.nominal_gpus + (quota.borrowing_limit_gpus if with_borrowed else 0)
    return gpus * pool.units_per_gpu


def _limits(limit: TenantLimit | None) -> Limits:
    return Limits(limit.cpu_millicores, limit.memory_mib, limit.workspaces) if limit else Limits()


def _people(
    tenants: set[UUID], people: Iterable[tuple[UUID, Any]], limits: dict[UUID, TenantLimit]
) -> defaultdict[UUID, dict[Any, PersonUse]]:
    """Only where a tenant has a limit for each of its people."""
    capped = {
        pk
        for pk, limit in limits.items()
        if limit.person_gpus is not None or limit.person_workspaces is not None
    }
    found: defaultdict[UUID, dict[Any, PersonUse]] = defaultdict(dict)
    held = held_by_people(capped)
    for tenant, user in people:
        if tenant in capped:
            limit = limits[tenant]
            found[tenant][user] = PersonUse(*held[tenant, user], limit.person_gpus, limit.person_workspaces)
    return found

"""Reads a pool's queue, nodes and tenants into the `PoolState` that `scheduling` decides on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from quotas import holders
from quotas.accounting import budgets
from quotas.allowed.usage import held_by_people, held_by_tenants, used_lately
from quotas.models import Booking, Claim, Pool, Quota, TenantLimit
from quotas.pools import health, leases
from quotas.pools.following import Affinities, nodes_to_follow
from quotas.pools.nodes import PoolNodes, nodes_of, takes
from quotas.scheduling import (
    Booked,
    Lease,
    Limits,
    PersonUse,
    PoolState,
    Reason,
    TenantQuota,
    Waiting,
    kept_now,
)

# Allowance for startup: a run's lifetime begins when it is ready.
START_MARGIN = timedelta(minutes=15)


TenantLimits = Mapping[UUID, TenantLimit | None]


def read(pool: Pool, claims: Iterable[Any], limits: TenantLimits | None = None) -> PoolState:
    """Return the state of a pool in which these claims wait, with a constant number of queries.

    `limits`: those of some tenants, None for a tenant without, if they were already read.
    """
    return read_all({pool: claims}, limits=limits)[pool.id]


def read_all(
    queues: Mapping[Pool, Iterable[Any]],
    seen: Mapping[UUID, PoolNodes] | None = None,
    limits: TenantLimits | None = None,
) -> dict[UUID, PoolState]:
    """Return the states of several pools, with as many queries as for one. `seen`: their nodes, if already read."""
    now = timezone.now()
    seen = nodes_of(queues) if seen is None else seen
    queues = {pool: list(claims) for pool, claims in queues.items()}
    bound = holders.affinities_of(chain.from_iterable(queues.values()))
    asking = {claim.holder_id for claim in chain.from_iterable(queues.values()) if claim.holder_id}
    wanted = leases.wanted(asking) if asking else {}
    waiting = {
        pool.id: tuple(
            as_waiting(claim, pool, _only(claim, bound, seen[pool.id]), wanted.get(claim.holder_id, ()))
            for claim in claims
        )
        for pool, claims in queues.items()
    }
    held = leases.held(wanted)
    bookings = booked(queues, now)
    tenants = {
        pool.id: {claim.tenant for claim in waiting[pool.id]}
        | {booking.tenant for booking in bookings[pool.id]}
        | {run.tenant for node in seen[pool.id].healthy for run in node.runs if run.in_pool}
        for pool in queues
    }
    people = {pk: {(claim.tenant, claim.user) for claim in asking} for pk, asking in waiting.items()}
    quotas = _quotas(queues, tenants, people, limits or {})
    return {
        pool.id: PoolState(
            units_per_gpu=pool.units_per_gpu,
            nodes=seen[pool.id].healthy,
            waiting=waiting[pool.id],
            tenants=quotas[pool.id],
            now=now,
            is_open=pool.is_open,
            bookings=tuple(bookings[pool.id]),
            grace=settings.RECLAIM_GRACE,
            out=health.told(pool, seen[pool.id].out),
            resting=seen[pool.id].resting,
            leased=held,
        )
        for pool in queues
    }


def _only(claim: Any, bound: Mapping[UUID, Affinities], seen: PoolNodes) -> frozenset[str] | None:
    return nodes_to_follow(bound.get(claim.holder_id, ()), seen.nodes)


# Fields that `as_waiting` reads. Rows of these work too, and load in half the time.
WAITING = (
    "id", "pool_id", "tenant_id", "user_id", "holder_kind", "holder_id", "units", "cpu_millicores", "memory_mib",
    "cards", "card_memory_mib", "card_cores", "priority", "place", "not_before", "reason_code", "reason_data",
    "max_runtime_minutes", "returns_first", "members",
)  # fmt: skip


def as_waiting(
    claim: Any, pool: Pool, only: frozenset[str] | None = None, asks: tuple[Lease, ...] = ()
) -> Waiting:
    return Waiting(
        claim=claim.id,
        tenant=claim.tenant_id,
        need=takes(claim, only=only, extra=pool.beside_gpus(claim.units)),
        priority=claim.priority,
        place=claim.place,
        is_workspace=claim.holder_kind == Claim.Holder.WORKSPACE,
        not_before=claim.not_before,
        reason=Reason(claim.reason_code, claim.reason_data),
        user=claim.user_id,
        lasts=lasts(claim.max_runtime_minutes),
        returns_first=claim.returns_first,
        leases=asks,
        members=claim.members,
    )


def lasts(max_runtime_minutes: int | None) -> timedelta | None:
    """Return the longest time for which a claim with this lifetime holds its units; None: no limit."""
    return None if max_runtime_minutes is None else timedelta(minutes=max_runtime_minutes) + START_MARGIN


def booked(pools: Iterable[Pool], now: datetime) -> defaultdict[UUID, list[Booked]]:
    """Return the bookings that are not over, by pool."""
    rows = Booking.objects.filter(pool__in=pools, ends_at__gt=now, cancelled_at=None)
    fields = ("pool_id", "pk", "tenant_id", "starts_at", "ends_at", "places", "units_each")
    found: defaultdict[UUID, list[Booked]] = defaultdict(list)
    for pool, *row in rows.order_by("starts_at", "pk").values_list(*fields):
        found[pool].append(Booked(*row))
    return found


def kept_for_bookings(pools: Iterable[Pool]) -> dict[UUID, dict[str, int]]:
    """Return the units that a pass keeps free for bookings that have begun, by pool and node name.

    One query where no booking has begun.
    """
    running = Booking.objects.filter(Booking.in_state(Booking.State.RUNNING))
    begun = set(running.values_list("pool", flat=True))
    queues: dict[Pool, tuple[Claim, ...]] = {pool: () for pool in pools if pool.pk in begun}
    states = read_all(queues) if queues else {}
    return {pool: kept_now(state) for pool, state in states.items()}


def may_hold(claim: Claim) -> TenantQuota:
    """Return what the claim's tenant and person may hold, as if nothing were held. Two queries."""
    pool, limit = claim.pool, TenantLimit.of(claim.tenant)
    quota = Quota.objects.filter(pool=pool, tenant=claim.tenant_id).order_by("pk").first()
    person = (
        PersonUse(most_gpus=limit.person_gpus, most_workspaces=limit.person_workspaces) if limit else None
    )
    return TenantQuota(
        used_units=0,
        limit_units=_units(pool, quota, with_borrowed=True),
        limits=_limits(limit),
        people={claim.user_id: person} if person else {},
    )


def tenant_quotas(pool: Pool, tenants: set[UUID]) -> dict[UUID, TenantQuota]:
    """Return what each tenant holds and may hold."""
    return _quotas([pool], {pool.id: tenants}, {}, {})[pool.id]


def _quotas(
    pools: Collection[Pool],
    tenants: Mapping[UUID, set[UUID]],
    people: Mapping[UUID, Collection[tuple[UUID, Any]]],
    known_limits: TenantLimits,
) -> dict[UUID, dict[UUID, TenantQuota]]:
    """Return by pool what each of its tenants, and each of these people in them, holds and may hold.

    A pool without GPUs is open to all within their limits.
    """
    everyone = {tenant for of_pool in tenants.values() for tenant in of_pool}
    quotas = {
        (quota.tenant_id, quota.pool_id): quota
        for quota in Quota.objects.filter(pool__in=pools, tenant__in=everyone)
    }
    unread = TenantLimit.objects.filter(tenant__in=everyone - known_limits.keys())
    limits = {tenant: limit for tenant, limit in known_limits.items() if limit is not None}
    limits |= {limit.tenant_id: limit for limit in unread}
    units, held = held_by_tenants(everyone)
    lately = used_lately(pools, everyone)
    uses = _people(everyone, {person for of_pool in people.values() for person in of_pool}, limits)
    costing = [pool.id for pool in pools if pool.has_gpus and pool.weight > 0]
    asking = {tenant for pk in costing for tenant, _user in people.get(pk, ())}
    blocked, blocked_people = budgets.blocked_by_budget(asking) if costing else ({}, {})
    spent_by: defaultdict[UUID, dict[Any, Reason]] = defaultdict(dict)
    for (tenant, user), why in blocked_people.items():
        spent_by[tenant][user] = why
    return {
        pool.id: {
            tenant: TenantQuota(
                used_units=units[tenant, pool.id],
                limit_units=_units(pool, quotas.get((tenant, pool.id)), with_borrowed=True),
                used=held[tenant],
                limits=_limits(limits.get(tenant)),
                nominal_units=_units(pool, quotas.get((tenant, pool.id)), with_borrowed=False),
                weight=quotas[tenant, pool.id].weight if (tenant, pool.id) in quotas else 1,
                past_use=lately[tenant, pool.id],
                people=uses[tenant],
                blocked=blocked.get(tenant) if pool.id in costing else None,
                blocked_people=spent_by[tenant] if pool.id in costing else {},
            )
            for tenant in tenants[pool.id]
        }
        for pool in pools
    }


def _units(pool: Pool, quota: Quota | None, *, with_borrowed: bool) -> int | None:
    if not pool.has_gpus:
        return None
    if quota is None:
        return 0
    gpus = quota.limit_gpus if with_borrowed else quota.nominal_gpus
    return gpus * pool.units_per_gpu


def _limits(limit: TenantLimit | None) -> Limits:
    return Limits(limit.cpu_millicores, limit.memory_mib, limit.workspaces) if limit else Limits()


def _people(
    tenants: set[UUID], people: Iterable[tuple[UUID, Any]], limits: dict[UUID, TenantLimit]
) -> defaultdict[UUID, dict[Any, PersonUse]]:
    """Return the use of people, only for tenants with a per-person limit."""
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

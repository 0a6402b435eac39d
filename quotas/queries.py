"""Pools, quotas and the queue as people see them. The number of queries does not grow with the data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.access import Actor, visible_tenants
from accounts.models import Tenant
from quotas import next_end, reasons, sharing
from quotas.allowed.storage import storage_of
from quotas.allowed.usage import held_by_people, held_over_all_pools, held_units
from quotas.models import Claim, Pool, Quota, TenantLimit, of_all_members
from quotas.pool_state import kept_for_bookings
from quotas.pools.gpu_map import figure
from quotas.pools.needs import known_ecc_of
from quotas.pools.nodes import PoolNodes, nodes_of
from quotas.scheduling import Reason, as_gpus
from quotas.scheduling.forecast import Confidence
from quotas.when import When, range_of, when

State = Claim.State


# As an expression of the ORM, this costs more to put together than all else that a launch's answer needs.
WAITING_BY_ID = """
    SELECT claim.*, pool.units_per_gpu,
        coalesce(claim.position - 1, before.claims) AS ahead, coalesce(claim.units_ahead, before.units) AS units_before
    FROM quotas_claim claim JOIN quotas_pool pool ON pool.id = claim.pool_id
    LEFT JOIN LATERAL (
        SELECT count(*) AS claims, coalesce(sum(other.units * other.members), 0) AS units FROM quotas_claim other
        WHERE (claim.position IS NULL OR claim.units_ahead IS NULL)
            AND other.pool_id = claim.pool_id AND other.state = claim.state
            AND (other.priority, -other.place) > (claim.priority, -claim.place)
    ) before ON true
    WHERE claim.id = ANY(%s) AND claim.state = %s
"""


class Queue(When):
    """Position of a waiting claim, its forecast, and why it waits."""

    position: int
    ahead: int
    gpus_ahead: float
    reason: dict[str, str]


def queues_of(claim_ids: Iterable[UUID]) -> dict[UUID, Queue]:
    """Return the queue status of those claims that wait, by id. At most two queries."""
    ids = list(claim_ids)
    if not ids:
        return {}
    now = timezone.now()
    queues = {claim: _queue(claim, now) for claim in Claim.objects.raw(WAITING_BY_ID, [ids, State.WAITING])}
    by_id = {claim.pk: queue for claim, queue in queues.items()}
    vague = {
        claim: Reason(claim.reason_code, claim.reason_data)
        for claim, queue in queues.items()
        if claim.position is not None and queue["confidence"] == Confidence.UNKNOWN
    }
    for claim_id, sentence in next_end.in_words(vague, now).items():
        reason = by_id[claim_id]["reason"]
        reason["message"] = f"{reason['message']} {sentence}"
    return by_id


def has_others_behind(claim: Claim) -> bool:
    """Return True if others wait in the same queue that came later, or count for less."""
    behind = Q(priority__lt=claim.priority) | Q(priority=claim.priority, place__gt=claim.place)
    return Claim.objects.filter(behind, pool=claim.pool_id, state=State.WAITING).exists()


def place_in_queue() -> Coalesce:
    """Return an expression for the number of claims ahead: as last decided; before the first pass, by place."""
    before = (
        Claim.objects.filter(
            Q(priority__gt=OuterRef("priority"))
            | Q(priority=OuterRef("priority"), place__lt=OuterRef("place")),
            pool=OuterRef("pool"),
            state=State.WAITING,
        )
        .order_by()
        .values("pool")
        .annotate(amount=Count("pk"))
        .values("amount")
    )
    return Coalesce(F("position") - 1, Subquery(before), 0)


def _queue(claim: Any, now: datetime) -> Queue:
    return Queue(
        position=claim.ahead + 1,
        ahead=claim.ahead,
        gpus_ahead=as_gpus(claim.units_before, claim.units_per_gpu),
        reason=reasons.in_queue(claim.reason_code, claim.reason_data, claim.ahead),
        **when(range_of(claim), now),
    )


def pools_for(
    actor: Actor,
    pools: Sequence[Pool] | None = None,
    nodes: Mapping[UUID, PoolNodes] | None = None,
    kept: Mapping[UUID, Mapping[str, int]] | None = None,
) -> list[dict[str, Any]]:
    """Return pools with free GPUs, the actor's own GPUs, and the number of waiting claims. Eight queries.

    Map, forms and API show these counts. `kept`: units kept for bookings, if they were already read.
    """
    if pools is None:
        pools = list(Pool.objects.select_related("cluster"))
    nodes = nodes or nodes_of(pools, with_runs=False)
    kept = kept_for_bookings(pools) if kept is None else kept
    waiting = _by_pool(Claim.objects.filter(state=State.WAITING), Count("pk"))
    own = Claim.objects.filter(state=State.ADMITTED, user=actor.user, tenant__in=visible_tenants(actor))
    mine = _by_pool(own, Sum(of_all_members("units")))
    return [
        _pool(pool, nodes[pool.id], kept.get(pool.id, {}), waiting=waiting[pool.id], mine=mine[pool.id])
        for pool in pools
    ]


def quotas_for(actor: Actor, quotas: Sequence[Quota] | None = None) -> list[dict[str, Any]]:
    """Return quotas and use of each tenant that the actor sees, for pools with GPUs."""
    if quotas is None:
        quotas = list(visible_quotas(actor))
    tenants = {quota.tenant_id for quota in quotas}
    used = held_units(tenants)
    longest = dict(
        TenantLimit.objects.filter(tenant__in=tenants).values_list("tenant_id", "longest_runtime_minutes")
    )
    return [_quota(quota, used[quota.tenant_id, quota.pool_id], longest) for quota in quotas]


def _quota(quota: Quota, units: int, longest: Mapping[UUID, int | None]) -> dict[str, Any]:
    per_gpu = quota.pool.units_per_gpu
    return {
        "tenant": quota.tenant.slug,
        "pool": quota.pool.slug,
        "nominal_gpus": quota.nominal_gpus,
        "borrowed_gpus": as_gpus(max(0, units - quota.nominal_gpus * per_gpu), per_gpu),
        "used_gpus": as_gpus(units, per_gpu),
        "limit_gpus": quota.limit_gpus,
        "weight": quota.weight,
        "longest_runtime_minutes": longest.get(quota.tenant_id),
    }


def limits_for(actor: Actor, tenants: Sequence[Tenant] | None = None) -> list[dict[str, Any]]:
    """Return use over all pools, and limits (None: no limit), of each tenant that the actor sees; and the actor's."""
    if tenants is None:
        tenants = list(visible_tenants(actor).order_by("slug"))
    if not tenants:
        return []
    limits = {limit.tenant_id: limit for limit in TenantLimit.objects.filter(tenant__in=tenants)}
    ids = {tenant.id for tenant in tenants}
    used, storage = held_over_all_pools(ids), storage_of(ids, actor.user.pk)
    own = held_by_people(ids)
    found = []
    for tenant in tenants:
        gpus, workspaces = own[tenant.id, actor.user.pk]
        uses = {
            "cpu_millicores": used[tenant.id].cpu_millicores,
            "memory_mib": used[tenant.id].memory_mib,
            "workspaces": used[tenant.id].workspaces,
            **storage[tenant.id],
            "person_gpus": as_gpus(gpus.numerator, gpus.denominator),
            "person_workspaces": workspaces,
        }
        limit = limits.get(tenant.id)
        amounts = {name: {"used": use, "limit": getattr(limit, name, None)} for name, use in uses.items()}
        found.append({"tenant": tenant.slug, **amounts})
    return found


def visible_quotas(actor: Actor) -> QuerySet[Quota]:
    return (
        Quota.objects.filter(tenant__in=visible_tenants(actor))
        .exclude(pool__resource_name="")
        .select_related("tenant", "pool")
    )


def _by_pool(claims: QuerySet[Claim], amount: Count | Sum) -> defaultdict[UUID, int]:
    return defaultdict(int, claims.order_by().values_list("pool_id").annotate(amount=amount))


def _pool(
    pool: Pool, nodes: PoolNodes, kept: Mapping[str, int], *, waiting: int, mine: int
) -> dict[str, Any]:
    booked = {node.name: min(max(node.free.units, 0), kept.get(node.name, 0)) for node in nodes.healthy}
    free = [max(node.free.units, 0) - booked[node.name] for node in nodes.healthy]
    per_gpu = pool.units_per_gpu
    units = {
        "total": sum(room.units for room in nodes.whole),
        "free": sum(free),
        "mine": mine,
    }
    most = max(free, default=0)
    more = {"booked": sum(booked.values()), "largest": most}
    return {
        "slug": pool.slug,
        "name": pool.name,
        "cluster": pool.cluster.slug,
        "gpu": {
            "product": pool.gpu_product or None,
            "memory_mib": pool.gpu_memory_mib,
            "compute_capability": pool.compute_capability or None,
            "ecc": known_ecc_of(pool, nodes.nodes),
        },
        "unit_memory_mib": pool.unit_memory_mib,
        "units_per_gpu": per_gpu,
        "sharing": pool.sharing if pool.has_gpus else None,
        "isolation": str(sharing.of(pool).isolation) if pool.has_gpus else None,
        "neighbours": str(sharing.of(pool).neighbours) if pool.has_gpus else None,
        "gives": sharing.of(pool).gives(pool) if pool.has_gpus else None,
        "gpus": {name: as_gpus(amount, per_gpu) for name, amount in units.items()},
        "counted": {name: figure(amount, per_gpu) for name, amount in (units | more).items()},
        "largest_free_on_one_node": as_gpus(most, per_gpu),
        "nodes": {"total": len(nodes.whole), "ready": len(nodes.healthy)},
        "out": {
            "nodes_not_ready": nodes.out.not_ready,
            "nodes_cordoned": nodes.out.cordoned,
            "nodes_unwell": nodes.out.unwell,
            "nodes_tainted": nodes.out.tainted,
            "gpus": as_gpus(nodes.out.units, per_gpu),
            "broken_gpus": as_gpus(nodes.out.broken_units, per_gpu),
        },
        "waiting": waiting,
        "next_free_at": None,
    }

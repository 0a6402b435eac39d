"""Usage by each of a person's tenants of its share, in names and words: the meters of the first page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accounts.access import Actor
from accounts.models import Tenant
from quotas.accounting import budgets
from quotas.models import TenantLimit
from quotas.queries import limits_for, quotas_for, visible_quotas


def shares(actor: Actor, tenants: Sequence[Tenant]) -> list[dict[str, Any]]:
    """Return per tenant its GPUs in each pool, its usage of limits over all pools, and this month's budgets.

    Ten queries at most for any number of tenants: usage of limits is read only for tenants with a limit.
    """
    rows = list(visible_quotas(actor).filter(tenant__in=tenants))
    pools: dict[str, list[dict[str, Any]]] = {}
    longest: dict[str, int | None] = {}
    for row, quota in zip(rows, quotas_for(actor, rows), strict=True):
        share = {
            "name": row.pool.name,
            "used": quota["used_gpus"],
            "limit": quota["limit_gpus"],
            "borrowed": quota["borrowed_gpus"],
        }
        pools.setdefault(row.tenant.slug, []).append(share)
        longest[row.tenant.slug] = quota["longest_runtime_minutes"]
    limited = set(TenantLimit.objects.filter(tenant__in=tenants).values_list("tenant_id", flat=True))
    limits = {
        limit["tenant"]: limit
        for limit in limits_for(actor, [tenant for tenant in tenants if tenant.pk in limited])
    }
    standings = budgets.own_standings(actor, tenants)
    found = [
        {
            "tenant": tenant,
            "pools": pools.get(tenant.slug, []),
            "limits": _set(limits.get(tenant.slug, {})),
            "longest_runtime_minutes": longest.get(tenant.slug),
            "budgets": [budgets.meter_values(one) for one in standings.get(tenant.pk, [])],
        }
        for tenant in tenants
    ]
    return [share for share in found if share["pools"] or share["limits"] or share["budgets"]]


def _set(limits: dict[str, Any]) -> dict[str, Any]:
    """Leave out amounts without a limit."""
    return {
        name: amount for name, amount in limits.items() if name != "tenant" and amount["limit"] is not None
    }

"""The most that a tenant could ever hold in a cluster: for the backstop behind the queue, never the queue itself."""

from __future__ import annotations

from collections import Counter
from math import ceil

from accounts.models import Tenant
from clusters.models import Cluster

from . import sharing
from .models import Quota, TenantLimit
from .usage import held_units

MIB = 1024**2


def ceilings(tenant: Tenant, cluster: Cluster) -> dict[str, int]:
    """Keys of a ResourceQuota to amounts: over all pools, what is the tenant's own and what it may borrow, or holds.

    Whoever lowers a quota stops nothing: what runs may restart. Storage is in bytes.
    """
    most: Counter[str] = Counter()
    held = held_units({tenant.pk})
    for quota in Quota.objects.filter(tenant=tenant, pool__cluster=cluster).select_related("pool"):
        holds = ceil(quota.pool.gpus(held[tenant.pk, quota.pool_id]))
        gpus = max(quota.limit_gpus, holds)
        most.update(sharing.of(quota.pool).ceiling(quota.pool, gpus))
    storage_mib = TenantLimit.objects.filter(tenant=tenant).values_list("storage_mib", flat=True).first()
    if storage_mib is not None:
        most["requests.storage"] = storage_mib * MIB
    return dict(most)

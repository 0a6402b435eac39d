"""Upper bounds of a tenant's use in a cluster, for its ResourceQuota: a backstop that the queue never reads."""

from __future__ import annotations

from collections import Counter
from math import ceil

from accounts.models import Tenant
from clusters.models import Cluster
from quotas import sharing
from quotas.models import Quota, TenantLimit

from .usage import held_units

MIB = 1024**2


def ceilings(tenant: Tenant, cluster: Cluster) -> dict[str, int]:
    """Return ResourceQuota keys and amounts: over all pools, own plus borrowable GPUs, or the GPUs held if more.

    A lowered quota stops nothing: running workspaces may restart. Storage is in bytes.
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

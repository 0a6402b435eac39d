"""Would it start now? And if not, what would: the answer beside the launch form and of `POST estimate/`."""

from __future__ import annotations

from itertools import islice

from accounts.models import Tenant
from quotas import sharing
from quotas.models import Flavor
from quotas.outlook import Outlook, StartsNow, outlook

from .sizing import Size

MOST_ALTERNATIVES = 3


def estimate(tenant: Tenant, size: Size) -> Outlook:
    """What the queue would say to this size. Writes nothing."""
    return outlook(
        tenant=tenant,
        pool=size.pool,
        portion=size.portion,
        cpu_millicores=size.requested_cpu_millicores,
        memory_mib=size.requested_memory_mib,
    )


def alternatives(tenant: Tenant, size: Size) -> list[Flavor]:
    """Ready-made sizes that would start now instead; those with GPUs first if GPUs were asked for."""
    flavors = [row for row in Flavor.objects.select_related("pool__cluster") if row != size.flavor]
    wants_gpus = size.units > 0
    ranked = sorted(flavors, key=lambda flavor: ((flavor.units > 0) != wants_gpus, distance(flavor, size)))
    now = StartsNow(tenant)
    return list(islice((flavor for flavor in ranked if starts(now, size_of(flavor))), MOST_ALTERNATIVES))


def starts(now: StartsNow, size: Size) -> bool:
    return now.holds(size.pool, size.portion, size.requested_cpu_millicores, size.requested_memory_mib)


def distance(flavor: Flavor, size: Size) -> float:
    """How different in GPUs."""
    return abs(float(flavor.pool.gpus(flavor.units)) - float(size.pool.gpus(size.units)))


def size_of(flavor: Flavor) -> Size:
    return Size(
        pool=flavor.pool,
        flavor=flavor,
        portion=sharing.of(flavor.pool).of_units(flavor.pool, flavor.units),
        cpu_millicores=flavor.cpu_millicores,
        memory_mib=flavor.memory_mib,
    )

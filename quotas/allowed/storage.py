"""Storage promised to a tenant, over all rooms that promise some, and its limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.errors import Invalid
from accounts.locks import locked
from accounts.models import Tenant
from quotas.models import TenantLimit

Promised = Callable[[Collection[UUID]], Mapping[UUID, int]]
_rooms: list[Promised] = []


def register(promised: Promised) -> None:
    """Ask this room, too: it returns the MiB that it promised, by tenant."""
    _rooms.append(promised)


def storage_of(tenants: Collection[UUID]) -> dict[UUID, int]:
    """Return the storage promised to each tenant in MiB. One query for each room."""
    totals = dict.fromkeys(tenants, 0)
    for promised in _rooms:
        for tenant, mib in promised(tenants).items():
            totals[tenant] += mib
    return totals


def lock(tenant: Tenant) -> None:
    """Take the lock of `refuse_beyond` before those of volumes, which come later in the order of locks."""
    list(locked(TenantLimit.objects.filter(tenant=tenant)).values_list("pk"))


def refuse_beyond(tenant: Tenant, asked_mib: int, *, field: str, hint: str) -> None:
    """Raise Invalid above the tenant's limit. Locks the limit, so that promises at the same time count each other.

    `field`: what the person chose too large.
    """
    limit = TenantLimit.of(tenant)
    if limit is None or limit.storage_mib is None:
        return
    limits = locked(TenantLimit.objects.filter(tenant=tenant, storage_mib__isnull=False))
    most = limits.values_list("storage_mib", flat=True).first()
    if most is None:
        return
    used = storage_of([tenant.pk])[tenant.pk]
    if used + asked_mib <= most:
        return
    amounts = {"used": used, "asked": asked_mib, "limit": most}
    text = _("%(tenant)s uses %(used)s of %(limit)s GiB of storage. This needs %(asked)s GiB.") % {
        "tenant": tenant.name,
        **{name: f"{mib / 1024:.4g}" for name, mib in amounts.items()},
    }
    raise Invalid("above_storage_limit", text, hint, fields={field: [text]})

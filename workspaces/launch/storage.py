"""Storage promised to a tenant's workspaces: homes and local disks, also those kept of deleted workspaces."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import F, Q, Sum
from django.utils.translation import gettext as _

from accounts.errors import Invalid
from accounts.locks import locked
from accounts.models import Tenant
from clusters.models import Cluster
from quotas.models import TenantLimit
from workspaces.models import Workspace

# A deleted workspace keeps its storage, unless its owner chose otherwise or an admin deleted the storage.
HAS_STORAGE = Q(deleted_at=None) | Q(delete_disk=False) & ~Q(volumes={})


def promised_mib(tenants: Collection[UUID]) -> dict[UUID, int]:
    """Promised MiB by tenant, in one query."""
    rows = Workspace.objects.filter(HAS_STORAGE, tenant__in=tenants).order_by()
    sums = rows.values_list("tenant_id").annotate(mib=Sum(F("disk_mib") + F("pool__cluster__home_mib")))
    return dict.fromkeys(tenants, 0) | dict(sums)


def refuse_beyond(tenant: Tenant, cluster: Cluster, disk_mib: int, *, has_home: bool = False) -> None:
    """Raise Invalid above the tenant's storage limit. Locks the limit, so that concurrent promises count each other."""
    limit = TenantLimit.of(tenant)
    if limit is None or limit.storage_mib is None:
        return
    limits = locked(TenantLimit.objects.filter(tenant=tenant, storage_mib__isnull=False))
    most = limits.values_list("storage_mib", flat=True).first()
    if most is None:
        return
    asked = disk_mib + (0 if has_home else cluster.home_mib)
    used = promised_mib([tenant.pk])[tenant.pk]
    if used + asked <= most:
        return
    amounts = {"used": used, "asked": asked, "limit": most}
    text = _(
        "%(tenant)s uses %(used)s of %(limit)s GiB of storage. This needs %(asked)s GiB, "
        "including the home directory."
    ) % {"tenant": tenant.name, **{name: f"{mib / 1024:.4g}" for name, mib in amounts.items()}}
    hint = _("Request a smaller disk, delete a workspace with its files, or ask your admin for more quota.")
    raise Invalid("above_storage_limit", text, hint, fields={"disk_mib": [text]})

"""Storage promised to a tenant's workspaces: homes and local disks, also those kept of deleted workspaces."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import F, Q, Sum
from django.utils.translation import gettext as _

from accounts.models import Tenant
from clusters.models import Cluster
from quotas.allowed import storage
from workspaces.models import Workspace

# A deleted workspace keeps its storage, unless its owner chose otherwise or an admin deleted the storage.
HAS_STORAGE = Q(deleted_at=None) | Q(delete_disk=False) & ~Q(volumes={})


def promised_mib(tenants: Collection[UUID]) -> dict[UUID, int]:
    """Promised MiB by tenant, in one query."""
    rows = Workspace.objects.filter(HAS_STORAGE, tenant__in=tenants).order_by()
    sums = rows.values_list("tenant_id").annotate(mib=Sum(F("disk_mib") + F("pool__cluster__home_mib")))
    return dict.fromkeys(tenants, 0) | dict(sums)


def refuse_beyond(tenant: Tenant, cluster: Cluster, disk_mib: int, *, has_home: bool = False) -> None:
    """Raise Invalid if home and disk of a workspace go beyond the tenant's storage limit."""
    asked = disk_mib + (0 if has_home else cluster.home_mib)
    hint = _(
        "This counts the home directory too. Request a smaller disk, delete a workspace with its files, or ask your "
        "admin for more quota."
    )
    storage.refuse_beyond(tenant, asked, field="disk_mib", hint=hint)

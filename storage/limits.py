"""Storage promised to a tenant by volumes: also those in the bin, whose data is still there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Greatest

from .models import Volume


def promised_mib(tenants: Collection[UUID]) -> Mapping[UUID, int]:
    """Return the MiB promised by tenant, in one query."""
    rows = Volume.objects.filter(tenant__in=tenants, deleted_at__isnull=True).order_by()
    return dict(rows.values_list("tenant_id").annotate(mib=Sum(Greatest("requested_mib", "size_mib"))))

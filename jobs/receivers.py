"""Receivers of signals from the rooms below: each marks jobs for a look, or refreshes their pages."""

from __future__ import annotations

from django.db.models import QuerySet

from clusters.models import Cluster
from quotas.models import Quota, TenantLimit
from workloads.live import groups

from . import enqueue
from .models import Job, Phase


def on_share_changed(*, instance: Quota | TenantLimit, **_: object) -> None:
    """Mark one job of the tenant per cluster: its look applies the changed ceiling of the namespace."""
    own = up().filter(tenant=instance.tenant_id)
    enqueue.look(
        own.order_by("pool__cluster_id", "pk").distinct("pool__cluster_id").values_list("pk", flat=True)
    )


def on_networks_changed(*, cluster: Cluster, **_: object) -> None:
    """Mark one job of each tenant that runs there: its look applies the tenant's network policy."""
    there = up().filter(pool__cluster=cluster)
    enqueue.look(there.order_by("tenant_id", "pk").distinct("tenant_id").values_list("pk", flat=True))


def on_reachability_changed(*, cluster: Cluster, **_: object) -> None:
    """Refresh the pages of the cluster's jobs: their message changes."""
    rows = Job.objects.filter(pool__cluster=cluster, deleted_at__isnull=True)
    tenants = rows.values_list("tenant", flat=True).distinct().order_by()
    groups.announce_all("job", tenants, rows.filter(ended_at__isnull=True).values_list("pk", flat=True))


def up() -> QuerySet[Job]:
    return Job.objects.filter(phase__in=(Phase.STARTING, Phase.RUNNING), deleted_at=None)

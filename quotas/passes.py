"""When an admission pass runs: after whatever may let somebody start, and at most one is on its way per pool.

The mark is set after the commit of what made the pass wanted, and taken away before the pass reads, so that no
change falls between. A mark whose pass was lost with its worker counts for nothing after ten seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.models import Cluster
from quotas import tasks
from quotas.models import Booking, Claim, Pool
from vitals.clock import about

LOST_AFTER = timedelta(seconds=10)


def want(pool_id: UUID) -> None:
    """Once the current transaction has committed, have a pass over this pool."""
    transaction.on_commit(lambda: _enqueue_once(pool_id), robust=True)


def want_for_cluster(cluster_id: UUID) -> None:
    """The same for every pool of the cluster in which somebody waits: pools may share nodes."""
    transaction.on_commit(lambda: _enqueue_for(Claim.objects.filter(pool__cluster=cluster_id)), robust=True)


def want_where_end_moved(claim_id: UUID) -> None:
    """The same: who waits for the nodes of this run is in others' way for longer now, or no longer."""
    want_for_cluster(Pool.objects.values_list("cluster_id", flat=True).get(claims=claim_id))


def want_after(cluster_id: UUID, tenants: Collection[UUID]) -> None:
    """Runs of these tenants ended or began: on the cluster's nodes, or anywhere within the tenants' limits.

    A beginning lets others start too: of those that waited for the same, some may not be in others' way any more.
    """
    may_gain = Q(pool__cluster=cluster_id) | Q(tenant__in=tenants)
    transaction.on_commit(lambda: _enqueue_for(Claim.objects.filter(may_gain)), robust=True)


def want_everywhere() -> None:
    """The same for every pool in which somebody waits: a limit became another."""
    transaction.on_commit(lambda: _enqueue_for(Claim.objects.all()), robust=True)


def begins(pool_id: UUID) -> None:
    """A pass, under its cluster's lock, is about to read: whatever changes from now on wants another."""
    Pool.objects.filter(pk=pool_id).update(pass_queued_at=None)


def on_capacity_changed(cluster: Cluster, **_: Any) -> None:
    want_for_cluster(cluster.id)


def on_tick(**_: Any) -> None:
    """A back-off may be over, a booking begins soon, or a pass was lost with its worker."""
    _enqueue_for(Claim.objects.all())
    now = timezone.now()
    beginning = Booking.objects.filter(
        cancelled_at=None, ends_at__gt=now, starts_at__lte=now + settings.RECLAIM_GRACE + LOST_AFTER
    )
    for pool_id in beginning.order_by().values_list("pool_id", flat=True).distinct():
        _enqueue_once(pool_id)


def on_worker_began(**_: Any) -> None:
    """The worker before it may have died with a pass in hand, which its mark would keep away for ten seconds."""
    for pool_id in Pool.objects.filter(pass_queued_at__isnull=False).values_list("pk", flat=True):
        begins(pool_id)
    _enqueue_for(Claim.objects.all())


def _enqueue_for(claims: QuerySet[Claim]) -> None:
    """A pass for every pool in which one of these waits, or was asked for its GPUs and may be spared."""
    asked_back = Q(state=Claim.State.ADMITTED, reclaim_at__isnull=False)
    unsettled = claims.filter(Q(state=Claim.State.WAITING) | asked_back)
    for pool_id in unsettled.order_by().values_list("pool_id", flat=True).distinct():
        _enqueue_once(pool_id)


def _enqueue_once(pool_id: UUID) -> None:
    now = timezone.now()
    unmarked = Q(pass_queued_at__isnull=True) | ~about("pass_queued_at", now, LOST_AFTER)
    pool = Pool.objects.filter(unmarked, pk=pool_id)
    if not pool.exists():  # as mostly, and many who ask at once do not wait for each other
        return
    with transaction.atomic():
        if pool.update(pass_queued_at=now):
            tasks.enqueue_pass(pool_id)

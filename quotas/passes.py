"""Enqueueing of admission passes: after any change that may let a claim start, at most one per pool.

`pass_queued_at` is set after the commit of the change that needs a pass, and cleared before the pass reads, so that no
change is missed. If a worker dies with the pass, the field is ignored after ten seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.models import Cluster
from quotas import enqueue
from quotas.models import Booking, Claim, Pool
from vitals.clock import is_near_now

LOST_AFTER = timedelta(seconds=10)


def want(pool_id: UUID) -> None:
    """Enqueue a pass over this pool once the current transaction has committed."""
    transaction.on_commit(lambda: _enqueue_once(pool_id), robust=True)


def want_for_cluster(cluster_id: UUID) -> None:
    """Enqueue passes on commit for the cluster's pools with a queue: pools may share nodes."""
    transaction.on_commit(lambda: _enqueue_for(Claim.objects.filter(pool__cluster=cluster_id)), robust=True)


def want_where_end_moved(claim_id: UUID) -> None:
    """Enqueue passes for the run's cluster: its end decides how long room on its nodes is reserved."""
    want_for_cluster(Pool.objects.values_list("cluster_id", flat=True).get(claims=claim_id))


def want_after(cluster_id: UUID, tenants: Collection[UUID]) -> None:
    """Enqueue passes after runs of these tenants began or ended: for the cluster's pools, and the tenants' pools.

    A start can unblock others too: claims that now wait for a full limit no longer reserve nodes.
    """
    may_gain = Q(pool__cluster=cluster_id) | Q(tenant__in=tenants)
    transaction.on_commit(lambda: _enqueue_for(Claim.objects.filter(may_gain)), robust=True)


def want_everywhere() -> None:
    """Enqueue passes on commit for all pools with a queue: a limit changed. A transaction of many changes asks once."""
    if not any(entry[1] is _enqueue_everywhere for entry in connection.run_on_commit):
        transaction.on_commit(_enqueue_everywhere, robust=True)


def _enqueue_everywhere() -> None:
    _enqueue_for(Claim.objects.all())


def begins(pool_id: UUID, cluster_id: UUID) -> bool:
    """Note that a pass, under its cluster's lock, is about to read: later changes need another pass.

    Return False if the pool is not in that cluster.
    """
    return bool(Pool.objects.filter(pk=pool_id, cluster=cluster_id).update(pass_queued_at=None))


def on_capacity_changed(cluster: Cluster, **_: Any) -> None:
    want_for_cluster(cluster.id)


def on_tick(**_: Any) -> None:
    """Enqueue passes: a back-off may be over, a booking begins soon, or a pass was lost with its worker."""
    _enqueue_for(Claim.objects.all())
    now = timezone.now()
    beginning = Booking.objects.filter(
        cancelled_at=None, ends_at__gt=now, starts_at__lte=now + settings.RECLAIM_GRACE + LOST_AFTER
    )
    for pool_id in beginning.order_by().values_list("pool_id", flat=True).distinct():
        _enqueue_once(pool_id)


def on_worker_began(**_: Any) -> None:
    """Enqueue passes again: the previous worker may have died with one, which would block it for ten seconds."""
    for pool_id in Pool.objects.filter(pass_queued_at__isnull=False).values_list("pk", flat=True):
        Pool.objects.filter(pk=pool_id).update(pass_queued_at=None)  # one by one, as passes mark them
    _enqueue_for(Claim.objects.all())


def _enqueue_for(claims: QuerySet[Claim]) -> None:
    """Enqueue a pass for each pool where one of these waits, or is preempted (a pass may cancel that)."""
    preempted = Q(state=Claim.State.ADMITTED, reclaim_at__isnull=False)
    unsettled = claims.filter(Q(state=Claim.State.WAITING) | preempted)
    for pool_id in unsettled.order_by().values_list("pool_id", flat=True).distinct():
        _enqueue_once(pool_id)


def _enqueue_once(pool_id: UUID) -> None:
    now = timezone.now()
    unmarked = Q(pass_queued_at__isnull=True) | ~is_near_now("pass_queued_at", now, LOST_AFTER)
    pool = Pool.objects.filter(unmarked, pk=pool_id)
    if not pool.exists():  # the usual case: concurrent callers do not wait for the row's lock
        return
    with transaction.atomic():
        if pool.update(pass_queued_at=now):
            enqueue.admission_pass(pool_id)

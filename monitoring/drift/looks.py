"""Times of looks at a whole cluster: every five minutes, a minute after a new finding, and when an admin asks. One look
at a time per cluster. A look that fails resolves nothing.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.access import Actor
from accounts.locks import alone
from accounts.models import Scope
from accounts.trail import audit
from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.models import Cluster
from monitoring import enqueue
from monitoring.models import Finding, Look
from vitals.clock import is_near_now

from .findings import LASTS, write
from .survey import survey

log = logging.getLogger(__name__)

EVERY = timedelta(minutes=5)
LOST_AFTER = timedelta(minutes=10)


def on_tick(**_: object) -> None:
    for cluster_id in due(timezone.now()).values_list("pk", flat=True):
        enqueue_look(cluster_id)


def due(now: datetime) -> QuerySet[Cluster]:
    """Clusters that answer and need a look: the last one is old, an admin asked, or a new finding needs a second."""
    looks = Look.objects.filter(cluster=OuterRef("pk"))
    fresh = Finding.objects.filter(
        cluster=OuterRef("cluster"), confirmed_at__isnull=True, resolved_at__isnull=True
    )
    on_its_way = is_near_now("queued_at", now, LOST_AFTER)
    is_recent = is_near_now("ended_at", now, EVERY) & (is_near_now("ended_at", now, LASTS) | ~Exists(fresh))
    settled = looks.filter(on_its_way | (is_recent & Q(wanted_at__isnull=True)))
    return Cluster.objects.filter(~Exists(settled), unreachable_since__isnull=True)


def want(cluster_id: UUID) -> None:
    """Look at the cluster as soon as a worker is free; look again if a look is under way."""
    Look.objects.update_or_create(cluster_id=cluster_id, defaults={"wanted_at": timezone.now()})
    transaction.on_commit(lambda: enqueue_look(cluster_id))


def want_all(actor: Actor) -> None:
    """Look at every cluster, because an admin asks."""
    actor.require(Scope.ADMIN)
    for cluster in Cluster.objects.all():
        want(cluster.pk)
    audit.record(actor, "drift.look")


def enqueue_look(cluster_id: UUID) -> None:
    with transaction.atomic():
        Look.objects.update_or_create(cluster_id=cluster_id, defaults={"queued_at": timezone.now()})
        enqueue.look(cluster_id)


def look(cluster_id: UUID) -> None:
    """Look at the cluster and write down the findings."""
    with alone(cluster_id) as mine:
        cluster = Cluster.objects.filter(pk=cluster_id).first()
        if not mine or cluster is None:
            return
        began, clock = timezone.now(), time.monotonic()
        rows = Look.objects.filter(cluster=cluster)
        before = rows.values_list("ended_at", flat=True).first()
        rows.update(wanted_at=None)
        try:
            seen = survey(cluster, api_for(cluster))
            with transaction.atomic():
                write(cluster, seen, began, before)
                rows.update(
                    queued_at=None,
                    ended_at=timezone.now(),
                    seconds=round(time.monotonic() - clock, 3),
                    objects_seen=seen.objects,
                    error="",
                )
        except ClusterError as error:
            log.warning("the look at %s came to no end: %s", cluster.slug, error.message)
            failed(cluster, error.message)
        except Exception as error:  # an unexpected object must not end all looks silently
            log.exception("the look at %s failed", cluster.slug)
            failed(cluster, f"{type(error).__name__}; the worker's log tells more.")


def failed(cluster: Cluster, why: str) -> None:
    Look.objects.filter(cluster=cluster).update(queued_at=None, ended_at=timezone.now(), error=why[:1000])

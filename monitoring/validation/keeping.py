"""Deletion of old GPU tests. The newest of each node stay, and the last that ran, as its result counts."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q

from accounts.locks import forget
from clusters.models import Node
from monitoring.models import Validation
from monitoring.validation.queries import RAN

KEPT = timedelta(days=90)
KEPT_OF_A_NODE = 20
MOST_AT_ONCE = 1000


def forget_old(now: datetime) -> None:
    """Delete one piece of old tests; the next call continues."""
    same_node = {"cluster": OuterRef("cluster"), "node": OuterRef("node")}
    newer = Validation.objects.filter(**same_node, asked_at__gt=OuterRef("asked_at"))
    # Count all nodes first: a check of each row for enough newer ones takes longer.
    by_node = Validation.objects.order_by().values("cluster", "node").annotate(count=Count("pk"))
    crowded = by_node.filter(count__gt=KEPT_OF_A_NODE).values("node")
    has_many_newer = Q(node__in=crowded) & Q(Exists(newer[KEPT_OF_A_NODE - 1 : KEPT_OF_A_NODE]))
    counts = Q(outcome__in=RAN) & ~Exists(newer.filter(outcome__in=RAN))
    node_is_there = Exists(Node.objects.filter(cluster=OuterRef("cluster"), name=OuterRef("node")))
    old = Validation.objects.filter(
        ~node_is_there | has_many_newer & ~counts, asked_at__lt=now - KEPT, ended_at__isnull=False
    )
    forget(Validation.objects.filter(pk__in=old.order_by("asked_at").values("pk")[:MOST_AT_ONCE]))

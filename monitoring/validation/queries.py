"""Results of tests by node."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from monitoring.models import Validation

Outcome = Validation.Outcome
RAN = (Outcome.PASSED, Outcome.FAILED)


def of_node(cluster_id: UUID, node: str) -> QuerySet[Validation]:
    """Return the tests of a node, newest first."""
    rows = Validation.objects.filter(cluster=cluster_id, node=node)
    return rows.select_related("cluster", "pool", "asked_by", "overruled_by")


def failed(cluster_id: UUID, node: str) -> Validation | None:
    """Return the test that keeps the node out: its last finished test failed, and no admin overruled it."""
    row = of_node(cluster_id, node).filter(outcome__in=RAN).first()
    return row if row and row.outcome == Outcome.FAILED and row.overruled_at is None else None


def failing(cluster_id: UUID) -> list[str]:
    """Return the nodes that a failed test keeps out."""
    rows = Validation.objects.filter(cluster=cluster_id, outcome__in=RAN)
    last = rows.order_by("node", "-asked_at", "id").distinct("node")
    return [row.node for row in last if row.outcome == Outcome.FAILED and row.overruled_at is None]

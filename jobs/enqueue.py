"""Marks that ask for a look at a job."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from clusters.watch import keeping

CHANNEL = "berth_jobs"


def look(ids: Iterable[UUID]) -> None:
    """Ask for a look at each: something about it changed."""
    cluster = "(SELECT cluster_id FROM quotas_pool WHERE quotas_pool.id = row.pool_id)"
    keeping.mark(ids, CHANNEL, "jobs_job", cluster)

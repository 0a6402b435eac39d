"""Marks that ask for a look at a job."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from uuid import UUID

from django.db import transaction

from clusters.watch import keeping

from .models import Job

CHANNEL = "berth_jobs"


def look(ids: Iterable[UUID]) -> None:
    """Ask for a look at each: something about it changed."""
    cluster = "(SELECT cluster_id FROM quotas_pool WHERE quotas_pool.id = row.pool_id)"
    keeping.mark(ids, CHANNEL, "jobs_job", cluster)


def look_at_followers(job_id: UUID) -> None:
    """Ask for looks at the jobs that wait for this one, once it is committed what happened to it.

    It may be lost in a crash: the keeper's clock looks at jobs that wait, too.
    """
    transaction.on_commit(partial(_look_at_followers, job_id))


def _look_at_followers(job_id: UUID) -> None:
    look(Job.objects.filter(is_held=True, after__predecessor=job_id).values_list("pk", flat=True))

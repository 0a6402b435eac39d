"""Objects of jobs that their rows want. Looks repair them or begin a new attempt, so none of them is ever missing or
changed: an object of a job is either known, or unwanted.

Their names have the id of the job (its Secret) or of an attempt's run (all else).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from accounts.models import Tenant
from clusters.models import Cluster
from jobs.cluster.manifests import KEPT_SECONDS
from jobs.models import Attempt, Job

# Kubernetes deletes an attempt's objects KEPT_SECONDS after its end, and needs a moment for that.
LATE = timedelta(seconds=KEPT_SECONDS) + timedelta(minutes=30)


def namespaces_of(cluster: Cluster | None, *ids: UUID) -> dict[UUID, str]:
    """Return the namespaces of jobs and runs that may have objects, by id; only those with `ids`, if any are given.

    None: of all clusters.
    """
    jobs = Job.objects.filter(deleted_at=None)
    if cluster is not None:
        jobs = jobs.filter(pool__cluster=cluster)
    present = Q(ended_at=None) | Q(ended_at__gt=timezone.now() - LATE)
    attempts = Attempt.objects.filter(present, part__job__in=jobs)
    if ids:
        jobs, attempts = jobs.filter(pk__in=ids), attempts.filter(run__in=ids)
    found = [
        *jobs.values_list("pk", "tenant__slug").iterator(),
        *attempts.values_list("run", "part__job__tenant__slug").iterator(),
    ]
    return {pk: Tenant(slug=slug).namespace for pk, slug in found}


def jobs_of(ids: Iterable[UUID]) -> Mapping[UUID, UUID]:
    """Return the job of each id, of a job or of a run, if it has a row."""
    ids = set(ids)
    jobs = {pk: pk for pk in Job.objects.filter(pk__in=ids).values_list("pk", flat=True)}
    return jobs | dict(Attempt.objects.filter(run__in=ids).values_list("run", "part__job"))

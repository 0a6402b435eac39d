"""Source of the log that a job's pod writes: its part and attempt, by the run in its labels."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from clusters import labels
from jobs.cluster.manifests import CONTAINER
from jobs.models import Attempt, Job
from quotas.models import Claim
from workloads.logs.sources import Kind, Pod, Source


def describe(pod: Pod) -> Source | None:
    """Return the source of a pod's log. Pods of a job on several nodes are numbered through, part after part."""
    columns = ("part__job__tenant", "part__index", "number", "part__job__nodes")
    row = Attempt.objects.filter(run=pod.run, part__job=pod.holder_id).values_list(*columns).first()
    if row is None:
        return None
    tenant_id, index, number, nodes = row
    return Source(tenant_id, index * nodes + pod.completion_index, number)


def owned(person_id: UUID, tenant_id: UUID) -> QuerySet[Job, UUID]:
    return Job.objects.filter(owner=person_id, tenant=tenant_id).values_list("pk", flat=True)


KIND = Kind(labels.JOB, Claim.Holder.JOB, CONTAINER, describe, owned)

"""Looks at the jobs of one cluster: when one of their pods changes, when a person does something, and by the clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from clusters import labels
from clusters.watch import keeping
from jobs.access import RELATED
from jobs.enqueue import CHANNEL
from jobs.models import OVER, Attempt, Desired, Job
from jobs.naming import named_in
from workloads.pods.wanted import Shared

from .look import look


class Keeper(keeping.Keeper):
    name, channel = "jobs", CHANNEL

    def of(self, change: str, body: dict[str, Any]) -> Iterable[UUID]:
        labelled = (body["metadata"].get("labels") or {}).get(labels.JOB)
        if labelled:
            try:
                return [UUID(labelled)]
            except ValueError:
                return []
        if body["kind"] != "Event":
            return []
        # Kubernetes events carry no labels of ours; the name of their object has the run.
        run = named_in((body.get("involvedObject") or {}).get("name") or "")
        if run is None:
            return []
        return list(Attempt.objects.filter(run=run).values_list("part__job", flat=True))

    def look(self, taken: Collection[UUID]) -> None:
        shared = Shared(taken)
        for job in self.rows().filter(pk__in=taken).select_related(*RELATED, "secret"):
            if self.stopped.is_set():
                return
            look(job, self.mirror, shared)

    def rows(self) -> QuerySet[Job]:
        return Job.objects.filter(pool__cluster=self.cluster, deleted_at=None).order_by()

    def unsettled(self) -> QuerySet[Job]:
        is_going = Q(desired=Desired.DELETED) | Q(dirty_since__isnull=False)
        return self.rows().filter(is_going | ~Q(phase__in=OVER))

"""Looks at the jobs of one cluster: when one of their pods changes, when a person does something, and by the clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from clusters import labels
from clusters.pods.ends import is_held, terminal
from clusters.watch import keeping
from jobs.access import RELATED
from jobs.enqueue import CHANNEL
from jobs.models import HOLD_UNITS, OVER, Attempt, Desired, Job, Part, PartPhase
from jobs.naming import named_in
from workloads.pods.wanted import Shared

from .look import look


class Keeper(keeping.Keeper):
    name, channel = "jobs", CHANNEL

    def of(self, change: str, body: dict[str, Any]) -> Iterable[UUID]:
        labelled = (body["metadata"].get("labels") or {}).get(labels.JOB)
        if labelled:
            found = as_id(labelled)
            return [] if found is None else [found]
        if body["kind"] != "Event":
            return []
        # Kubernetes events carry no labels of ours; the name of their object has the run.
        run = named_in((body.get("involvedObject") or {}).get("name") or "")
        if run is None:
            return []
        return list(Attempt.objects.filter(run=run).values_list("part__job", flat=True))

    def look(self, taken: Collection[UUID]) -> Iterator[tuple[UUID, bool]]:
        shared = Shared(taken)
        for job in self.rows().filter(pk__in=taken).select_related(*RELATED, "secret"):
            if self.stopped.is_set():
                return
            yield job.pk, look(job, self.mirror, shared)

    def rows(self) -> QuerySet[Job]:
        return Job.objects.filter(pool__cluster=self.cluster, deleted_at=None).order_by()

    def unsettled(self) -> QuerySet[Job]:
        is_going = Q(desired=Desired.DELETED) | Q(dirty_since__isnull=False)
        return self.rows().filter(is_going | (~Q(phase__in=OVER) & ~only_waits()))

    def after_list(self) -> QuerySet[Job]:
        """Leave out jobs that are over and have left nothing: there are tens of thousands of them."""
        left = {pod["metadata"]["labels"][labels.JOB] for pod in self.mirror.all("Pod") if is_left(pod)}
        services = (service["metadata"].get("labels") or {} for service in self.mirror.all("Service"))
        left |= {of[labels.JOB] for of in services if labels.JOB in of}
        return self.rows().filter(
            Q(pk__in=self.unsettled().values("pk")) | Q(pk__in=filter(None, map(as_id, left)))
        )


def only_waits() -> Q:
    """Select jobs all of whose parts are over or in the queue: quotas mark them when one is admitted."""
    parts = Part.objects.filter(job=OuterRef("pk"))
    is_queued = Exists(parts.filter(phase=PartPhase.WAITING))
    has_more = Exists(parts.filter(phase__in=(PartPhase.PENDING, *HOLD_UNITS)))
    return Q(is_queued, ~has_more, is_held=False)


def is_left(pod: dict[str, Any]) -> bool:
    """Return True for a job's pod that runs or whose end Berth has not written down."""
    is_ours = labels.JOB in (pod["metadata"].get("labels") or {})
    return is_ours and (not terminal(pod) or is_held(pod))


def as_id(text: str) -> UUID | None:
    """Return the job's id that a label says, or None: people can write anything there."""
    try:
        return UUID(text)
    except ValueError:
        return None

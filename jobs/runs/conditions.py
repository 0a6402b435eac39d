"""Problems of an attempt's node, GPU or storage, as events of its job and a notice for its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from django.db.models import Q

from jobs import notices
from jobs.changing import add_event, changing
from jobs.models import UP, Attempt
from workloads.conditions import Condition, Started, differ


class OfJobs:
    """The `workloads.conditions.Runs` of jobs: their attempts."""

    def started(self, cluster_id: UUID) -> Started:
        present = Attempt.objects.filter(
            ended_at=None, part__job__pool__cluster=cluster_id, part__phase__in=UP
        )
        rows = present.values_list("run", "created_at", "part__job__units")
        return {run: (at, units > 0) for run, at, units in rows}

    def set_conditions(self, cluster_id: UUID, wanted: Mapping[UUID, Sequence[Condition]]) -> None:
        present = Attempt.objects.filter(ended_at=None, part__job__pool__cluster=cluster_id)
        known = present.filter(Q(run__in=wanted) | ~Q(conditions=[])).select_related("part")
        for attempt in known.order_by("part__job", "pk"):
            if differ(attempt.conditions, has := wanted.get(attempt.run, ())):
                _set(attempt, has)


def _set(attempt: Attempt, wanted: Sequence[Condition]) -> None:
    """Set the present problems of the attempt, if it is still on. Its owner is notified of each once per job."""
    part = attempt.part
    with changing(part.job_id) as job:
        row = Attempt.objects.filter(pk=attempt.pk, ended_at=None).first()
        if row is None:
            return
        others = Attempt.objects.filter(part__job=job, ended_at=None).exclude(pk=row.pk)
        told = {
            one["code"] for conditions in others.values_list("conditions", flat=True) for one in conditions
        }
        had = {one["code"] for one in row.conditions}
        row.conditions = [asdict(one) for one in wanted]
        row.save(update_fields=["conditions"])
        for one in wanted:
            if one.code not in had:
                data = {**one.data, "index": part.index, "node": row.node}
                event = add_event(job, one.code, run=row.run, level=one.level, **data)
                if one.code not in told:
                    notices.notify_condition(event)

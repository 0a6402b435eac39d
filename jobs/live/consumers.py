"""Websockets of jobs: all that a person may see, one with its events, and one's log."""

from __future__ import annotations

from jobs import access
from jobs.api.representation import describing, event_json, with_related
from jobs.models import Job
from workloads.live.following import ListOf, One
from workloads.live.reads import Kind
from workloads.logs.sockets import LogOf

JOBS = Kind(
    name="job",
    joined=lambda ids: Job.objects.filter(pk__in=ids).select_related(*access.RELATED),
    listed=lambda actor: with_related(access.visible(actor)).filter(deleted_at__isnull=True),
    describing=describing,
    get=access.get,
    require_there=access.require_there,
    event_json=event_json,
)


class JobList(ListOf):
    kind = JOBS


class OneJob(One):
    kind = JOBS


class JobLog(LogOf):
    kind = JOBS

    def may_read(self, row: Job) -> bool:
        return access.may_manage(self.actor, row)

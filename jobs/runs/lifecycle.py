"""Cancel, retry and delete a job, as people ask. Each writes rows; the keeper carries it out."""

from __future__ import annotations

import json
from collections.abc import Collection

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.access import Actor
from accounts.announcements.showing import refuse_in_maintenance
from accounts.credentials.secrets import encrypt
from accounts.trail import audit
from jobs import access, enqueue
from jobs.changing import add_event, changing
from jobs.models import HOLD_UNITS, SETTLED, Desired, Ending, Job, JobSecret, Part, PartPhase, Phase, Series
from quotas import admission
from storage import connections
from storage.mounts import homes

from . import following, parts


def cancel(actor: Actor, job: Job) -> bool:
    """End all its attempts, and start no more. Return False if it is over already."""
    access.require_manage(actor, job)
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        with changing(job.pk) as row:
            if row.desired != Desired.DONE or row.ended_at is not None:
                return False
            add_event(row, "cancel_requested", by=actor.user.get_username())
            end_all(row, Desired.CANCELLED)
        enqueue.look([job.pk])
        audit.record(actor, "job.cancel", target=job, tenant=job.tenant)
    return True


def end_all(job: Job, desired: Desired) -> None:
    """Withdraw what waits, and take down what runs. Inside `changing`, under the cluster's lock."""
    job.desired = desired
    job.troubles = {}
    end_parts(job.parts.exclude(phase__in=SETTLED))
    parts.show(job)


def end_parts(rows: QuerySet[Part]) -> int:
    """Withdraw parts that wait, and take down those that run. Return how many."""
    found = dict(rows.values_list("pk", "run"))
    chosen = Part.objects.filter(pk__in=found)
    chosen.filter(phase__in=HOLD_UNITS).update(phase=PartPhase.ENDING, ending=Ending.CANCEL)
    withdrawn = admission.withdraw([run for run in found.values() if run], "cancelled")
    waits = Q(phase=PartPhase.PENDING) | Q(phase=PartPhase.WAITING, run__in=withdrawn)
    chosen.filter(waits).update(phase=PartPhase.CANCELLED)
    return len(found)


def stop_rest(actor: Actor, job: Job, keep: Collection[int] = ()) -> bool:
    """End all parts that are not over but those to keep; the job goes on with them. Return False if none is ended."""
    access.require_manage(actor, job)
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        with changing(job.pk) as row:
            rest = row.parts.exclude(phase__in=SETTLED).exclude(index__in=keep).exclude(ending=Ending.CANCEL)
            if row.desired != Desired.DONE or not (count := end_parts(rest)):
                return False
            kept = ", ".join(map(str, sorted(keep)))
            code = "rest_stopped_but" if keep else "rest_stopped"
            add_event(row, code, by=actor.user.get_username(), count=count, kept=kept)
            parts.show(row)
        enqueue.look([job.pk])
        audit.record(actor, "job.stop_rest", target=job, tenant=job.tenant)
    return True


def retry(actor: Actor, job: Job, *, only_failed: bool = False) -> bool:
    """Let parts of a job that is over run again: all, or those that did not succeed. Return False if none does."""
    access.require_own(actor, job)
    refuse_in_maintenance(actor)
    with transaction.atomic():
        admission.lock(*{job.pool.cluster_id, *following.clusters_of_held(job.tenant)})
        with changing(job.pk) as row:
            if row.desired == Desired.DELETED or row.ended_at is None:
                return False
            following.refuse_hopeless(row)
            again = row.parts.exclude(phase=PartPhase.SUCCEEDED) if only_failed else row.parts.all()
            Series.objects.filter(part__in=again.values("pk")).delete()
            fresh = {"ending": "", "failures": 0, "metrics": {}, "progress": None, "pace": {}}
            if not again.update(phase=PartPhase.PENDING, **fresh):
                return False
            row.desired, row.phase = Desired.DONE, Phase.WAITING
            row.failure = row.ended_at = row.expires_at = row.started_at = row.version = None
            add_event(row, "retry_requested", by=actor.user.get_username())
            parts.request_next(row, is_new=True)
        following.revive(job)
        enqueue.look([job.pk])
        audit.record(actor, "job.retry", target=job, tenant=job.tenant)
    return True


def retry_failed(actor: Actor, job: Job) -> bool:
    return retry(actor, job, only_failed=True)


def delete(actor: Actor, job: Job) -> bool:
    """Cancel it if it is not over, and take it away. Return False if it is deleted already."""
    access.require_manage(actor, job)
    with transaction.atomic():
        admission.lock(job.pool.cluster_id)
        with changing(job.pk) as row:
            if row.desired == Desired.DELETED:
                return False
            add_event(row, "delete_requested", by=actor.user.get_username())
            end_all(row, Desired.DELETED)
        enqueue.look([job.pk])
        audit.record(actor, "job.delete", target=job, tenant=job.tenant)
    return True


def become_deleted(job: Job) -> None:
    """Forget what a deleted job kept for its owner alone. Its events stay. Inside `changing`."""
    job.deleted_at = timezone.now()
    job.env, job.repository, job.command = {}, "", []
    JobSecret.objects.filter(job=job).update(env=encrypt(json.dumps({})), script="")
    homes.let_go(job.pk, with_data=False)
    connections.forget(job.pk)
    add_event(job, "deleted")

"""Look at a test under way: create its Job, or check it; and end the test with a reason, whatever happens.

The row is the truth, and the cluster is read anew each time: a worker may die anywhere, and the next look goes on. A
Job that nobody deletes ends and is deleted by itself.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.locks import alone
from clusters import labels
from clusters.api import Api
from clusters.connections import api_for
from clusters.errors import ClusterError, ClusterRefused
from clusters.explain import diagnose
from clusters.models import Installation
from clusters.watch.watching import Changed
from monitoring import measures
from monitoring.health.judging import judge
from monitoring.models import Validation
from quotas.pools.nodes import free_on_each
from vitals.clock import is_near_now

from . import manifests, reading
from .manifests import CONTAINER
from .reading import Outcome, Verdict
from .starting import Chances, enqueue_look, why_not

log = logging.getLogger(__name__)

DEADLINE = timedelta(seconds=manifests.DEADLINE_SECONDS)
GIVEN_UP = DEADLINE + timedelta(minutes=5)
LOST_AFTER = timedelta(seconds=30)  # a task that no worker began, or that died with its worker
LOG_LINES = 1000


def on_tick(**_: object) -> None:
    on_its_way = is_near_now("queued_at", timezone.now(), LOST_AFTER)
    for pk in Validation.objects.filter(~on_its_way, ended_at=None).values_list("pk", flat=True):
        enqueue_look(pk)


def on_objects_changed(*, changes: list[Changed], **_: object) -> None:
    """Look at once when a pod of a test has changed."""
    labelled = {(step.body["metadata"].get("labels") or {}).get(labels.VALIDATION) for step in changes}
    if any(labelled):
        for pk in Validation.objects.filter(ended_at=None).values_list("pk", flat=True):
            if str(pk) in labelled:
                enqueue_look(pk)


def look(validation_id: UUID) -> None:
    with alone(validation_id) as mine:
        rows = Validation.objects.filter(pk=validation_id, ended_at=None)
        row = rows.select_related("cluster", "pool__cluster").first()
        if not mine or row is None:
            return
        rows.update(queued_at=None)
        why = ""
        try:
            _look(row, api_for(row.cluster))
        except ClusterRefused as refused:
            told = diagnose("admission", refused.message)
            end(row, Verdict(Outcome.NOT_RUN, told.code, told.data))
        except ClusterError as error:
            log.info("the test of %s waits for its cluster: %s", row.node, error.message)
            why = "validation_cluster_away"
        except Exception:  # an unexpected error: try again, but not for ever
            log.exception("the test of %s could not be looked at", row.node)
            why = "validation_lost"
        if why and timezone.now() - row.asked_at > GIVEN_UP:
            end(row, Verdict(Outcome.NOT_RUN, why))


def _look(row: Validation, api: Api) -> None:
    job = api.get("Job", own_namespace(), manifests.name_of(row))
    if job is None:
        if row.job_uid:
            end(row, Verdict(Outcome.NOT_RUN, "validation_job_gone"))
        else:
            make(row, api)
        return
    if not row.job_uid:
        keep_uid(row, job)
    pod = pod_of(row, api)
    run = reading.run_of(pod) if pod else None
    if pod is None or run is None:
        wait(row, job, pod, api)
        return
    lines = api.logs(own_namespace(), pod["metadata"]["name"], container=CONTAINER, tail_lines=LOG_LINES)
    text = reading.tail(lines)
    end(row, reading.verdict(run, text, row.image), text, run)
    remove(row, api)


def make(row: Validation, api: Api) -> None:
    """Create the Job, if the GPU is still free: it may be taken since the request."""
    pool = row.pool
    if pool is None:
        end(row, Verdict(Outcome.NOT_RUN, "validation_no_pool", {"node": row.node}))
        return
    if refused := why_not(row.node, Chances(pool, free_on_each(pool))):
        end(row, Verdict(Outcome.NOT_RUN, refused.code, refused.data))
        return
    instance = Installation.current_id()
    there = api.get("Namespace", None, own_namespace())
    if there is not None and (there["metadata"].get("labels") or {}).get(labels.INSTANCE) != str(instance):
        end(row, Verdict(Outcome.NOT_RUN, "namespace_foreign", {"namespace": own_namespace()}))
        return
    for body in manifests.place(instance):
        api.apply(body)
    keep_uid(row, api.apply(manifests.job(row, pool, instance)))


def own_namespace() -> str:
    return manifests.namespace(Installation.current_id())


def keep_uid(row: Validation, job: dict[str, Any]) -> None:
    row.job_uid = job["metadata"]["uid"]
    row.save(update_fields=["job_uid"])


def pod_of(row: Validation, api: Api) -> dict[str, Any] | None:
    own = {**labels.instance_selector(), labels.VALIDATION: str(row.pk)}
    pods = api.list("Pod", namespace=own_namespace(), labels=own)
    return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), default=None)


def wait(row: Validation, job: dict[str, Any], pod: dict[str, Any] | None, api: Api) -> None:
    """Write down what delays the test. End the test if its time is over."""
    if pod is None and has_ended(job):
        end(row, Verdict(Outcome.NOT_RUN, "validation_job_gone"))
        return
    found = reading.in_the_way(pod, events_of(pod, api), api.get("Node", None, row.node))
    if timezone.now() - row.asked_at > DEADLINE or has_ended(job) or reading.has_failed(pod):
        before = Verdict(Outcome.NOT_RUN, row.code, row.data)
        end(row, reading.without_end(found, before, has_begun=reading.has_begun(pod)))
        remove(row, api)
    elif found.code and (found.code, found.data) != (row.code, row.data):
        Validation.objects.filter(pk=row.pk, ended_at=None).update(code=found.code, data=found.data)


def has_ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions") or []
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)


def events_of(pod: dict[str, Any] | None, api: Api) -> list[dict[str, Any]]:
    if pod is None:
        return []
    return api.list("Event", namespace=own_namespace(), fields={"involvedObject.uid": pod["metadata"]["uid"]})


def end(row: Validation, verdict: Verdict, text: str = "", run: reading.Run | None = None) -> None:
    """End the test. From here on the result counts: a node whose test failed gets no new runs on its GPUs."""
    with transaction.atomic():
        is_mine = Validation.objects.filter(pk=row.pk, ended_at=None).update(
            outcome=verdict.outcome,
            code=verdict.code,
            data=verdict.data,
            log=text,
            started_at=run.started_at if run else None,
            ended_at=(run.ended_at if run else None) or timezone.now(),
        )
        if is_mine:
            judge(row.cluster_id, row.node)
            transaction.on_commit(partial(measures.VALIDATIONS.count, str(verdict.outcome)))


def remove(row: Validation, api: Api) -> None:
    """Delete the Job now. If the cluster does not answer, the Job is deleted by itself later."""
    with suppress(ClusterError):
        api.delete("Job", own_namespace(), manifests.name_of(row), uid=row.job_uid or None)

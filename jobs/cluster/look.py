"""A look at a job: its attempts are made, watched and ended, as its rows say.

A look may run twice, come late, or be killed anywhere. A job is looked at by one thread of one process at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from accounts.locks import alone
from clusters import labels
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.mirror import Mirror
from clusters.pods.ends import end_proven, remove_finalizer, terminal
from jobs.changing import changing
from jobs.models import Attempt, Desired, Job, Part, PartPhase
from jobs.runs import attempts, lifecycle
from jobs.runs.ends import End, end_of, index_of, is_over, is_running
from quotas.models import Claim
from quotas.namespaces import ensuring
from storage.cluster.look import hold
from storage.mounts import mounting
from workloads.pods.looking import binding_modes, with_reasons
from workloads.pods.making import explain_refusal, make_driver_volume, refused
from workloads.pods.status import Object, accepted
from workloads.pods.troubles import Blocked, Outcome, Snapshot, Trouble, explain_trouble, trouble
from workloads.pods.wanted import Shared

from . import manifests
from .manifests import Wanted, wanted_of

log = logging.getLogger(__name__)
UP = (PartPhase.STARTING, PartPhase.RUNNING)


def look(job: Job, mirror: Mirror, shared: Shared) -> bool:
    """Look at one job and answer its marks. Return False if the look has to be tried again."""
    try:
        with alone(job.pk) as mine:
            if not mine or job.pool.cluster.unreachable_since is not None:
                return False
            is_done = _look(job, mirror, shared)
    except (OperationalError, InterfaceError):
        raise
    except ClusterUnavailable as error:
        log.warning("job %s: the cluster is away: %s", job.pk, error.message)
        return False
    except ClusterRefused as refusal:
        log.warning("job %s: the cluster refused: %s", job.pk, refusal.message)
        attempts.note_trouble(job.pk, explain_trouble("admission", refusal.message))
        return False
    except Exception:
        log.exception("job %s: a fault", job.pk)
        return False
    if is_done and job.dirty_since is not None:
        Job.objects.filter(pk=job.pk, dirty_marks=job.dirty_marks).update(dirty_since=None)
    return is_done


def _look(job: Job, mirror: Mirror, shared: Shared) -> bool:
    live = list(job.parts.filter(phase__in=(*UP, PartPhase.ENDING)).order_by("index"))
    runs = [part.run for part in live if part.run is not None]
    known = {one.run: one for one in Attempt.objects.filter(run__in=runs)}
    claims = Claim.objects.filter(state=Claim.State.ADMITTED).in_bulk(runs)
    by_run: dict[str, list[Object]] = {}
    for pod in mirror.of("Pod", str(job.pk)):
        by_run.setdefault((pod["metadata"].get("labels") or {}).get(labels.RUN, ""), []).append(pod)
    for part in live:
        attempt = known.get(part.run) if part.run else None
        claim = claims.get(part.run) if part.run else None
        if attempt is None or claim is None:
            continue
        pods = by_run.pop(str(part.run), [])
        attempt.part, part.job = part, job
        if part.phase == PartPhase.ENDING:
            take_down(job, part, attempt, pods, mirror)
        else:
            bring_up(wanted_of(job, part, attempt, claim, shared, timezone.now()), pods, mirror)
    for run, pods in by_run.items():
        set_aside(job, run, pods, mirror)
    names = {f"job-{run}" for run in runs}
    for service in mirror.of("Service", str(job.pk)):
        if (name := service["metadata"]["name"]) not in names:  # of an attempt whose end an admin confirmed
            remove_network(job.tenant.namespace, name, mirror)
    if job.desired == Desired.DELETED and not live:
        return delete(job, mirror)
    return True


def set_aside(job: Job, run: str, pods: Sequence[Object], mirror: Mirror) -> None:
    """End pods of runs that are over: what came late must not run without a claim."""
    for pod in pods:
        if end_proven(pod):
            remove_finalizer(pod, mirror)
        elif not pod["metadata"].get("deletionTimestamp"):
            mirror.delete("Job", job.tenant.namespace, f"job-{run}")
            mirror.delete("Pod", job.tenant.namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"])


def delete(job: Job, mirror: Mirror) -> bool:
    """Delete what is left of a deleted job in the cluster, then say so in its row."""
    for run in Attempt.objects.filter(part__job=job).values_list("run", flat=True):
        mirror.delete("Job", job.tenant.namespace, f"job-{run}")
    mirror.delete("Secret", job.tenant.namespace, job.object_name)
    with changing(job.pk) as row:
        if row.deleted_at is None:
            lifecycle.become_deleted(row)
    return True


# --- up


def bring_up(wanted: Wanted, pods: Sequence[Object], mirror: Mirror) -> None:
    """Make the attempt's Job if it is missing, and write down what its pods show."""
    job, attempt = wanted.job, wanted.attempt
    kept = None
    if len(pods) < job.nodes or attempts.vanished(attempt, pods):
        pods, kept = missing(wanted, mirror)
    attempts.note_pods(attempt, pods)
    if attempts.vanished(attempt, pods):
        attempts.pod_vanished(job, attempt)
        return
    if not pods:
        bring_up_without_pods(wanted, kept, mirror)
        return
    if all(end_proven(pod) for pod in pods):
        kept = mirror.api.get("Job", wanted.namespace, wanted.name)
        if is_over(kept):  # else the watch tells when its controller has counted the end
            settle(job, attempt, pods, end_of(job, pods, kept), mirror)
        return
    make_network(wanted, mirror)  # it is made again if somebody deleted it
    if len(pods) >= job.nodes and all(is_running(pod) or end_proven(pod) for pod in pods):
        attempts.begin_running(job, attempt)
        attempts.note_trouble(job.pk, None)
    else:
        stalled(wanted, first_trouble(pods, mirror) or no_pod(kept, mirror))


def first_trouble(pods: Sequence[Object], mirror: Mirror) -> Trouble | None:
    """Return what keeps one of the pods from running, of the first index that something does."""
    late = (pod for pod in sorted(pods, key=index_of) if not (is_running(pod) or end_proven(pod)))
    found = (trouble(with_reasons(Snapshot(pods=[pod]), mirror)) for pod in late)
    return next(filter(None, found), None)


def no_pod(kept: Object | None, mirror: Mirror) -> Trouble | None:
    """Return why a Job's controller makes no pod."""
    about = [] if kept is None else mirror.events_about(kept["metadata"]["uid"])
    told = [one for one in about if one.get("type") == "Warning"]
    newest = max(told, key=lambda one: str(one.get("lastTimestamp") or ""), default=None)
    return None if newest is None else explain_refusal(str(newest.get("message", "")))


def bring_up_without_pods(wanted: Wanted, kept: Object | None, mirror: Mirror) -> None:
    """Make the attempt's Job; of one that is there, tell why it has no pod."""
    job, attempt = wanted.job, wanted.attempt
    if attempt.members or (kept is not None and is_over(kept)):
        settle(job, attempt, (), end_of(job, (), kept), mirror)
    elif kept is None:
        attempts.note_trouble(job.pk, make(wanted, mirror))
    else:
        stalled(wanted, no_pod(kept, mirror))


def missing(wanted: Wanted, mirror: Mirror) -> tuple[Sequence[Object], Object | None]:
    """Ask the cluster for pods and Job of an attempt of which the watch has told nothing."""
    pods = mirror.api.list("Pod", namespace=wanted.namespace, labels={labels.RUN: str(wanted.run)})
    return pods, mirror.api.get("Job", wanted.namespace, wanted.name)


def make(wanted: Wanted, mirror: Mirror) -> Trouble | None:
    """Make what the attempt needs, and its Job last. Return what is in the way."""
    try:
        tenant_objects = wanted.shared.tenant_objects(wanted.job.tenant, wanted.cluster)
        ensuring.ensure(tenant_objects, wanted.instance, mirror)
        make_driver_volume(wanted, mirror)
        if has_storage(wanted, mirror):
            make_job(wanted, mirror)
    except Blocked as blocked:
        return _fail(wanted, blocked.trouble)
    except ensuring.NoNamespace as error:
        outcome = Outcome.WAIT if error.is_going else Outcome.FAIL
        found_trouble = explain_trouble("admission", error.code, outcome)
        return _fail(wanted, found_trouble)
    except ClusterRefused as refusal:
        return _fail(wanted, refused(refusal))
    return None


def has_storage(wanted: Wanted, mirror: Mirror) -> bool:
    """Make the PVC of its home if it is missing. Return True once all that it mounts is there."""
    if (blocked := mounting.in_the_way(wanted.mounts, wanted.job.owner_id)) is not None:
        code, data, helps_to_wait = blocked
        raise Blocked(code, Outcome.WAIT if helps_to_wait else Outcome.FAIL, **data)
    found = [hold(one.volume, mirror, wanted.instance) for one in wanted.own]
    claims = [claim for claim in found if claim is not None]
    modes = binding_modes(claims, mirror)
    return len(claims) == len(found) and all(accepted(claim, modes) for claim in claims)


def make_job(wanted: Wanted, mirror: Mirror) -> None:
    mirror.apply(manifests.secret(wanted))
    files = manifests.start_files(wanted)
    if mirror.get("ConfigMap", wanted.namespace, files["metadata"]["name"]) is None:
        mirror.apply(files)
    make_network(wanted, mirror)
    create(manifests.job(wanted), mirror)


def make_network(wanted: Wanted, mirror: Mirror) -> None:
    """Let the pods of a gang find and reach each other, before there is any."""
    if wanted.is_gang and mirror.get("Service", wanted.namespace, wanted.name) is None:
        for body in reversed(manifests.network(wanted)):  # the Service last: nothing watches the policy
            mirror.apply(body)


def remove_network(namespace: str, name: str, mirror: Mirror) -> None:
    """Delete what `make_network` made, the Service last."""
    for kind in ("NetworkPolicy", "Service"):
        mirror.delete(kind, namespace, name)


def create(body: dict[str, Any], mirror: Mirror) -> None:
    try:
        mirror.create(body)
    except ClusterRefused as refusal:
        if refusal.reason != "AlreadyExists":
            raise


def _fail(wanted: Wanted, found: Trouble) -> Trouble | None:
    stalled(wanted, found)
    return found


def stalled(wanted: Wanted, found: Trouble | None) -> None:
    """Note what keeps the attempt from starting; end it once that has lasted too long."""
    since = attempts.note_trouble(wanted.job.pk, found)
    if found is None or found.outcome == Outcome.WAIT or since is None:
        return
    if (timezone.now() - since).total_seconds() >= found.after_seconds:
        fails = found.outcome == Outcome.FAIL
        attempts.give_up(wanted.job, wanted.attempt, found.diagnosis, fails=fails)


# --- down


def take_down(job: Job, part: Part, attempt: Attempt, pods: Sequence[Object], mirror: Mirror) -> None:
    """Delete the attempt's Job and pods, and go on once their end is proven and no more can come."""
    namespace, name = job.tenant.namespace, attempt.object_name
    if attempts.vanished(attempt, pods):
        pods = mirror.api.list("Pod", namespace=namespace, labels={labels.RUN: str(attempt.run)})
    attempts.note_pods(attempt, pods)
    mirror.delete("Job", namespace, name)
    for pod in pods:
        if not pod["metadata"].get("deletionTimestamp") and not terminal(pod):
            mirror.delete("Pod", namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"])
    is_gone = mirror.api.get("Job", namespace, name) is None
    if not is_gone or not all(end_proven(pod) for pod in pods):
        return  # the watch tells its end
    if attempts.vanished(attempt, pods):
        attempts.pod_vanished(job, attempt)
        return
    if len(pods) < job.nodes:
        there = mirror.api.list("Pod", namespace=namespace, labels={labels.RUN: str(attempt.run)})
        if len(there) > len(pods):
            return  # the watch has not reported all yet
    settle(job, attempt, pods, end_of(job, pods, None), mirror)


def settle(job: Job, attempt: Attempt, pods: Sequence[Object], end: End, mirror: Mirror) -> None:
    """Write down the end, and only then let go of its pods. Until then a look that was cut off comes again."""
    if job.nodes > 1:
        remove_network(job.tenant.namespace, attempt.object_name, mirror)
    attempts.finish(job, attempt, end)
    for pod in pods:
        remove_finalizer(pod, mirror)

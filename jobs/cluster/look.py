"""A look at a job: its attempts are made, watched and ended, as its rows say.

A look may run twice, come late, or be killed anywhere. A job is looked at by one thread of one process at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from accounts.locks import alone
from clusters import labels
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.mirror import Mirror
from clusters.pods.ends import end_proven, remove_finalizer, terminal
from clusters.watch.ticks import is_due
from jobs.changing import changing
from jobs.models import UP, Attempt, Desired, Job, Part, PartPhase
from jobs.naming import name_of
from jobs.runs import attempts, following, lifecycle, parts
from jobs.runs.ends import End, end_of, has_succeeded, is_over, is_running, is_suspended
from quotas.models import Claim
from quotas.namespaces import ensuring
from storage.cluster.look import hold
from storage.mounts import mounting
from workloads.pods.looking import binding_modes, with_reasons
from workloads.pods.making import explain_refusal, make_driver_volume, refuse_image, refused
from workloads.pods.status import Object, accepted, index_of
from workloads.pods.troubles import Blocked, Outcome, Snapshot, Trouble, explain_trouble, trouble
from workloads.pods.wanted import Shared

from . import manifests
from .manifests import Wanted, wanted_of

log = logging.getLogger(__name__)

# A policy that somebody deleted is back after so long.
POLICY_SECONDS = 60


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
        attempts.show_troubles(job, (), explain_trouble("admission", refusal.message).diagnosis)
        return False
    except Exception:
        log.exception("job %s: a fault", job.pk)
        return False
    if is_done and job.dirty_since is not None:
        Job.objects.filter(pk=job.pk, dirty_marks=job.dirty_marks).update(dirty_since=None)
    return is_done


def _look(job: Job, mirror: Mirror, shared: Shared) -> bool:
    if job.is_held and job.desired == Desired.DONE:
        following.follow(job)
        return True
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
    starting = {part.run for part in live if part.phase in UP}
    attempts.show_troubles(job, [one for one in known.values() if one.run in starting])
    set_aside(job, by_run, {name_of(run) for run in runs}, mirror)
    if parts.lacks_claims(job):
        attempts.request_more(job)
    if live and job.dirty_since is not None:
        keep_fences(job, mirror, shared)
    late = [pod for pods in by_run.values() for pod in pods if not end_proven(pod)]
    if job.desired == Desired.DELETED and not live and not late:
        return delete(job, mirror)
    return True


def set_aside(job: Job, by_run: dict[str, list[Object]], names: set[str], mirror: Mirror) -> None:
    """Clear away what attempts left behind that are over. `names`: objects of those that are not."""
    for run, pods in by_run.items():
        end_late(job, run, pods, mirror)
    for service in mirror.of("Service", str(job.pk)):
        if (name := service["metadata"]["name"]) not in names:  # of an attempt whose end an admin confirmed
            remove_network(job.tenant.namespace, name, mirror)


def end_late(job: Job, run: str, pods: Sequence[Object], mirror: Mirror) -> None:
    """End pods of a run that is over: what came late must not run without a claim."""
    for pod in pods:
        if end_proven(pod):
            remove_finalizer(pod, mirror)
            if not pod["metadata"].get("ownerReferences"):  # else it is deleted with its Job
                mirror.delete(
                    "Pod", job.tenant.namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"]
                )
        elif not pod["metadata"].get("deletionTimestamp"):
            mirror.delete("Job", job.tenant.namespace, name_of(run))
            delete_pod(pod, mirror)


def keep_fences(job: Job, mirror: Mirror, shared: Shared) -> None:
    """Apply the tenant's network policy and ceiling, which may have changed since its attempts began."""
    with suppress(ensuring.NoNamespace):  # what starts there says so
        ensuring.ensure(shared.tenant_objects(job.tenant, job.pool.cluster), shared.instance, mirror)


def delete(job: Job, mirror: Mirror) -> bool:
    """Delete what is left of a deleted job in the cluster, then say so in its row."""
    for kept in mirror.api.list("Job", namespace=job.tenant.namespace, labels={labels.JOB: str(job.pk)}):
        mirror.delete("Job", job.tenant.namespace, kept["metadata"]["name"], uid=kept["metadata"]["uid"])
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
    elif not pods:
        bring_up_without_pods(wanted, kept, mirror)
    elif all(end_proven(pod) for pod in pods):
        settle_once_over(wanted, mirror)
    else:
        make_network(wanted, mirror)  # somebody may have deleted it
        # To Kubernetes a deleted pod has not failed if its program left with 0
        if any(end_proven(pod) and not has_succeeded(pod) for pod in pods):
            delete_running(pods, mirror)
        follow_start(wanted, pods, kept, mirror)


def follow_start(wanted: Wanted, pods: Sequence[Object], kept: Object | None, mirror: Mirror) -> None:
    """Note that all pods run, or what keeps one from that."""
    late = [pod for pod in sorted(pods, key=index_of) if not (is_running(pod) or end_proven(pod))]
    if not late and len(pods) >= wanted.job.nodes:
        attempts.note_trouble(wanted.attempt, None)
        attempts.begin_running(wanted.job, wanted.attempt)
        return
    found = (trouble(with_reasons(Snapshot(pods=[pod]), mirror)) for pod in late)
    stands_in_the_way = next(filter(None, found), None)
    if stands_in_the_way is not None:
        make_files(wanted, mirror)  # somebody may have deleted what the pod mounts
    stalled(wanted, stands_in_the_way or no_pod(kept, mirror))


def no_pod(kept: Object | None, mirror: Mirror) -> Trouble | None:
    """Return why a Job's controller makes no pod."""
    about = [] if kept is None else mirror.events_about(kept["metadata"]["uid"])
    told = [one for one in about if one.get("type") == "Warning"]
    newest = max(told, key=lambda one: str(one.get("lastTimestamp") or ""), default=None)
    return None if newest is None else explain_refusal(str(newest.get("message", "")))


def settle_once_over(wanted: Wanted, mirror: Mirror) -> None:
    """Write down the end of an attempt whose pods have ended, once the cluster makes no more of them."""
    job, attempt = wanted.job, wanted.attempt
    kept = mirror.api.get("Job", wanted.namespace, wanted.name)
    if is_over(kept):
        pods = pods_now(job, attempt, mirror)
        if all(end_proven(pod) for pod in pods):
            settle(job, attempt, pods, end_of(job, pods, kept), mirror)
    elif kept is not None and is_suspended(kept):
        mirror.delete(
            "Job", wanted.namespace, wanted.name
        )  # by hand: the cluster would resume it by hand only
    # else the watch tells when its controller has counted the end


def pods_now(job: Job, attempt: Attempt, mirror: Mirror) -> Sequence[Object]:
    """Return the pods of an attempt as the cluster has them: the watch may be behind."""
    run = {labels.RUN: str(attempt.run)}
    return mirror.api.list("Pod", namespace=job.tenant.namespace, labels=run)


def bring_up_without_pods(wanted: Wanted, kept: Object | None, mirror: Mirror) -> None:
    """Make the attempt's Job; of one that is there, tell why it has no pod."""
    job, attempt = wanted.job, wanted.attempt
    if attempt.members or (kept is not None and is_over(kept)):
        settle(job, attempt, (), end_of(job, (), kept), mirror)
    elif kept is None:
        attempts.note_trouble(attempt, make(wanted, mirror))
    elif is_suspended(kept):
        mirror.delete("Job", wanted.namespace, wanted.name)  # by hand: no pod would ever come
    else:
        stalled(wanted, no_pod(kept, mirror))


def missing(wanted: Wanted, mirror: Mirror) -> tuple[Sequence[Object], Object | None]:
    """Ask the cluster for pods and Job of an attempt of which the watch has told nothing."""
    return pods_now(wanted.job, wanted.attempt, mirror), mirror.api.get("Job", wanted.namespace, wanted.name)


def make(wanted: Wanted, mirror: Mirror) -> Trouble | None:
    """Make what the attempt needs, and its Job last. Return what is in the way."""
    try:
        tenant_objects = wanted.shared.tenant_objects(wanted.job.tenant, wanted.cluster)
        ensuring.ensure(tenant_objects, wanted.instance, mirror)
        make_driver_volume(wanted, mirror)
        refuse_image(wanted.job.image)
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
    make_files(wanted, mirror)
    make_network(wanted, mirror)
    create(manifests.job(wanted), mirror)


def make_network(wanted: Wanted, mirror: Mirror) -> None:
    """Let the pods of a gang find and reach each other, before there is any. Nothing watches the policy."""
    if not wanted.is_gang:
        return
    service, policy = manifests.network(wanted)
    is_missing = mirror.get("Service", wanted.namespace, wanted.name) is None
    if is_missing or is_due(POLICY_SECONDS):
        mirror.apply(policy)
    if is_missing:
        mirror.apply(service)


def remove_network(namespace: str, name: str, mirror: Mirror) -> None:
    """Delete what `make_network` made, the Service last."""
    for kind in ("NetworkPolicy", "Service"):
        mirror.delete(kind, namespace, name)


def make_files(wanted: Wanted, mirror: Mirror) -> None:
    """Make the Secret and the ConfigMap that its pod mounts."""
    mirror.apply(manifests.secret(wanted))
    files = manifests.start_files(wanted)
    if mirror.get("ConfigMap", wanted.namespace, files["metadata"]["name"]) is None:
        mirror.apply(files)


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
    since = attempts.note_trouble(wanted.attempt, found)
    if found is None or found.outcome == Outcome.WAIT or since is None:
        return
    if (timezone.now() - since).total_seconds() >= found.after_seconds:
        fails = found.outcome == Outcome.FAIL
        attempts.give_up(wanted.job, wanted.attempt, found.diagnosis, fails=fails)


# --- down


def take_down(job: Job, part: Part, attempt: Attempt, pods: Sequence[Object], mirror: Mirror) -> None:
    """Delete the attempt's Job and pods, and go on once their end is proven and no more can come."""
    namespace, name = job.tenant.namespace, attempt.object_name
    attempts.note_pods(attempt, pods)
    mirror.delete("Job", namespace, name)
    delete_running(pods, mirror)
    if not is_over(mirror.api.get("Job", namespace, name)) or not all(end_proven(pod) for pod in pods):
        return  # the watch tells its end
    pods = pods_now(job, attempt, mirror)
    attempts.note_pods(attempt, pods)
    if attempts.vanished(attempt, pods):
        attempts.pod_vanished(job, attempt)
    elif all(end_proven(pod) for pod in pods):
        settle(job, attempt, pods, end_of(job, pods, None), mirror)


def delete_running(pods: Sequence[Object], mirror: Mirror) -> None:
    for pod in pods:
        if not pod["metadata"].get("deletionTimestamp") and not terminal(pod):
            delete_pod(pod, mirror)


def delete_pod(pod: Object, mirror: Mirror) -> None:
    of = pod["metadata"]
    mirror.delete("Pod", of["namespace"], of["name"], uid=of["uid"])


def settle(job: Job, attempt: Attempt, pods: Sequence[Object], end: End, mirror: Mirror) -> None:
    """Write down the end, and only then let go of its pods. Until then a look that was cut off comes again."""
    attempts.note_last(attempt, pods)
    if job.nodes > 1:
        remove_network(job.tenant.namespace, attempt.object_name, mirror)
    attempts.finish(job, attempt, end)
    for pod in pods:
        remove_finalizer(pod, mirror)

"""Parts of a job: their claims, and what the job shows of them. Inside `changing`, under the cluster's lock."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import UUID

from django.db.models import Count
from django.utils import timezone

from accounts.errors import Refusal, TooMany
from jobs import enqueue
from jobs.changing import Level, add_event
from jobs.models import LIVE, OVER, SETTLED, Attempt, Desired, Ending, Job, Part, PartPhase, Phase
from jobs.story import spelled
from quotas import admission
from quotas.models import Claim
from workloads import failures
from workloads.sizes.sizing import Size

# Of one person, in the queue at once: nobody may fill it.
MOST_WAITING = 500


def request_next(job: Job, *, is_new: bool = False) -> None:
    """Put claims of pending parts into the queue, as many as may run at once.

    Raise a Refusal for a job that is new; one that limits refuse by now has failed. Parts beyond what one person may
    have in the queue stay pending: looks request them later (`lacks_claims`).
    """
    if job.desired != Desired.DONE:
        return
    if job.is_held:
        show(job)
        return
    room = job.parallelism - job.parts.filter(phase__in=LIVE).count()
    for part in job.parts.filter(phase=PartPhase.PENDING).order_by("index")[: max(0, room)]:
        try:
            claim = request(job, part)
        except TooMany:
            if is_new and not job.parts.filter(phase=PartPhase.WAITING).exists():
                raise
            break
        except Refusal as refusal:
            if is_new:
                raise
            part.phase = PartPhase.FAILED
            part.save(update_fields=["phase"])
            fail(job, "refused_again", {"reason": refusal.message})
            continue
        part.phase, part.run = PartPhase.WAITING, claim.pk
        part.save(update_fields=["phase", "run"])
    show(job)


def lacks_claims(job: Job) -> bool:
    """Return True if more of its parts may be in the queue, and its person may have more there."""
    if job.desired != Desired.DONE or job.is_held or not job.parts.filter(phase=PartPhase.PENDING).exists():
        return False
    if job.parts.filter(phase__in=LIVE).count() >= job.parallelism:
        return False
    waiting = Claim.objects.filter(user=job.owner_id, state=Claim.State.WAITING)
    return waiting.count() < MOST_WAITING


def request(job: Job, part: Part) -> Claim:
    size = Size.of(job)
    return admission.request(
        tenant=job.tenant,
        user=job.owner,
        pool=size.pool,
        portion=size.portion,
        cpu_millicores=size.requested_cpu_millicores,
        memory_mib=size.requested_memory_mib,
        holder_kind=Claim.Holder.JOB,
        holder_id=job.pk,
        part=part.index,
        priority=job.priority,
        max_runtime_minutes=job.max_runtime_minutes,
        most_waiting=MOST_WAITING,
        nodes=job.nodes,
    )


def begin(job: Job, claim: Claim) -> Attempt | None:
    """Begin an attempt under an admitted claim; None if it has one already."""
    part = job.parts.get(index=claim.part)
    if part.phase not in (PartPhase.WAITING, PartPhase.PENDING, PartPhase.ENDING):
        return None
    part.number += 1
    part.phase, part.ending, part.run = PartPhase.STARTING, "", claim.pk
    part.save(update_fields=["number", "phase", "ending", "run"])
    attempt = Attempt.objects.create(part=part, number=part.number, run=claim.pk, node=claim.node)
    job.started_at = job.started_at or claim.admitted_at
    add_event(
        job,
        "admitted",
        run=claim.pk,
        index=part.index,
        attempt=part.number,
        pool=claim.pool.name,
        node=spelled(claim.nodes),
    )
    show(job)
    return attempt


def end(job: Job, part: Part, ending: Ending) -> None:
    """Begin to take an attempt down. What follows is decided when its end is proven."""
    part.phase, part.ending = PartPhase.ENDING, ending
    part.save(update_fields=["phase", "ending"])
    show(job)


def fail(job: Job, code: str, data: dict[str, object], run: UUID | None = None) -> None:
    """Keep why the job failed: the first reason stays. `run`: of the attempt whose end it is, if that has a record."""
    job.failure = job.failure or failures.failure(code, data, timezone.now(), run)


def show(job: Job) -> None:
    """Set the job's phase and message by its parts, and note its end."""
    counts = Counter(dict(job.parts.order_by().values_list("phase").annotate(Count("pk"))))
    phase = phase_of(job.desired, counts)
    if phase == Phase.SUCCEEDED and job.failure is not None:
        phase = Phase.FAILED  # what it wrote could not be published
    if phase == job.phase and phase in OVER:
        return
    job.phase = phase
    if phase in OVER:
        job.ended_at = timezone.now()
        job.troubles = {}
        enqueue.look_at_followers(job.pk)
        hours = job.ttl_hours
        job.expires_at = None if hours is None else job.ended_at + timedelta(hours=hours)
        level = Level.ERROR if phase == Phase.FAILED else Level.INFO
        add_event(job, str(phase), level=level, failed=counts[PartPhase.FAILED], parts=job.completions)
        job.message_code, job.message_data = str(phase), {}
        if job.failure is not None and (phase == Phase.FAILED or job.is_held):
            job.message_code, job.message_data = job.failure["code"], job.failure["data"]
    elif not job.troubles:
        job.message_code = f"doing_{phase}"
        job.message_data = {
            "done": counts[PartPhase.SUCCEEDED],
            "parts": job.completions,
            "running": counts[PartPhase.RUNNING],
        }


def phase_of(desired: str, counts: Counter[str]) -> Phase:
    """Return a job's phase by the number of its parts in each phase."""
    if all(phase in SETTLED for phase, count in counts.items() if count):
        # Parts of a job that was not cancelled were ended because others are good enough.
        if counts[PartPhase.CANCELLED] and (desired != Desired.DONE or not counts[PartPhase.SUCCEEDED]):
            return Phase.CANCELLED
        return Phase.FAILED if counts[PartPhase.FAILED] else Phase.SUCCEEDED
    if desired != Desired.DONE:
        return Phase.CANCELLING
    if counts[PartPhase.RUNNING]:
        return Phase.RUNNING
    if counts[PartPhase.STARTING] or counts[PartPhase.ENDING]:
        return Phase.STARTING
    return Phase.WAITING

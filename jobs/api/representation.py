"""JSON of jobs and their events for the API, the websockets and the pages. From rows alone, never the cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from accounts.access import Actor
from jobs import access, programs, story
from jobs.models import LIVE, OVER, Attempt, Event, Job, Part, PartPhase
from jobs.progress import estimate
from jobs.runs import following
from quotas.queries import queues_of
from storage.mounts import mounting
from workloads import devices
from workloads.failures import is_past, post_mortem_of
from workloads.figures import exposition, moment, number

Json = dict[str, Any]
# By job and phase: the number of parts, and the sum of the progress that they reported.
Tallies = dict[UUID, dict[str, tuple[int, float]]]
STILL_TO_RUN = {*LIVE, PartPhase.PENDING} - {PartPhase.RUNNING}
MOST_ATTEMPTS = 100
MOST_IN_A_LIST = 1000  # attempts of all jobs together


def with_related(rows: QuerySet[Job]) -> QuerySet[Job]:
    return rows.prefetch_related(*access.RELATED)


def job_json(job: Job, actor: Actor) -> Json:
    return describing([job], tails=access.may_manage(actor, job))(job, actor)


def jobs_json(jobs: Iterable[Job], actor: Actor) -> list[Json]:
    """JSON of many jobs, with as many queries as for one."""
    jobs = list(jobs)
    describe = describing(jobs)
    return [describe(job, actor) for job in jobs]


def in_brief(jobs: Iterable[Job], actor: Actor) -> list[Json]:
    """JSON without attempts, volumes, order and progress, for pages that show none of them."""
    jobs = list(jobs)
    ids = [job.pk for job in jobs]
    brief = _brief(ids, tallies_of(ids))
    return [brief(job, actor) for job in jobs]


def _brief(ids: Collection[UUID], tallies: Tallies) -> Callable[[Job, Actor], Json]:
    counts, first = _counted(tallies), first_waiting(ids)
    queues = queues_of(first.values())

    def describe(job: Job, actor: Actor) -> Json:
        queue = queues.get(first[job.pk]) if job.pk in first else None
        return _job_json(job, actor, counts[job.pk], queue)

    return describe


def describing(jobs: Iterable[Job], *, tails: bool = False) -> Callable[[Job, Actor], Json]:
    """Return a function for the JSON of any of these for any actor, without further queries.

    `tails`: with the last lines of attempts, which only those who may read the output are shown.
    """
    jobs = list(jobs)
    ids = [job.pk for job in jobs]
    tallies = tallies_of(ids)
    brief = _brief(ids, tallies)
    progress = progress_of(jobs, tallies)
    attempts = attempts_of(ids, tails=tails)
    mounts = mounting.mounts_of(ids)
    after = afters_of(ids)
    # For one job alone: of GPUs that runs have at the moment, all figures are read.
    live = (
        [one.run for each in attempts.values() for one in each if not one.ended_at] if len(jobs) == 1 else []
    )
    had = devices.of(live)

    def describe(job: Job, actor: Actor) -> Json:
        return brief(job, actor) | {
            "attempts": [attempt_json(one, had.get(one.run), tails=tails) for one in attempts[job.pk]],
            "volumes": mounting.as_json(mounts.get(job.pk, [])),
            "after": after[job.pk],
            "progress": progress[job.pk],
        }

    return describe


def counts_of(jobs: Iterable[UUID]) -> dict[UUID, Counter[str]]:
    """Return the number of parts in each phase, by job."""
    return _counted(tallies_of(jobs))


def _counted(tallies: Tallies) -> dict[UUID, Counter[str]]:
    found: dict[UUID, Counter[str]] = defaultdict(Counter)
    for job, of_job in tallies.items():
        found[job].update({phase: count for phase, (count, _reported) in of_job.items()})
    return found


def tallies_of(jobs: Iterable[UUID]) -> Tallies:
    """Return the number of parts in each phase, and the sum of the progress that they reported, by job."""
    found: Tallies = defaultdict(dict)
    rows = Part.objects.filter(job__in=jobs).order_by().values_list("job", "phase")
    for job, phase, count, reported in rows.annotate(Count("pk"), Sum("progress")):
        found[job][phase] = count, reported or 0.0
    return found


def attempts_of(jobs: Collection[UUID], *, tails: bool) -> dict[UUID, list[Attempt]]:
    """Return the newest attempts, by job: of many jobs, fewer of each. `tails`: with their last lines."""
    most = max(1, min(MOST_ATTEMPTS, MOST_IN_A_LIST // max(1, len(jobs))))
    number = Window(RowNumber(), partition_by=F("part__job"), order_by=F("pk").desc())
    rows = Attempt.objects.filter(part__job__in=jobs).annotate(place=number).filter(place__lte=most)
    found: dict[UUID, list[Attempt]] = defaultdict(list)
    unread = ["part__parameters", "part__metrics", "part__pace", *([] if tails else ["tail"])]
    for one in rows.select_related("part").defer(*unread).order_by("pk"):
        found[one.part.job_id].append(one)
    return found


def first_waiting(jobs: Iterable[UUID]) -> dict[UUID, UUID]:
    """Return the claim of each job's first part that waits."""
    rows = Part.objects.filter(job__in=jobs, phase=PartPhase.WAITING, run__isnull=False)
    return {part.job_id: part.run for part in rows.order_by("job", "-index") if part.run is not None}


def _job_json(job: Job, actor: Actor, counts: Counter[str], queue: Any) -> Json:
    own = access.is_own(actor, job)
    return {
        "id": str(job.pk),
        "tenant": job.tenant.slug,
        "owner": job.owner.get_username(),
        "name": job.name,
        "image": job.image.slug,
        "image_reference": job.image.reference if job.image.is_own else None,
        "pool": job.pool.slug,
        "flavor": job.flavor.slug if job.flavor else None,
        "gpus": number(round(float(job.pool.gpus(job.units)), 4)),
        "cpu": number(job.cpu_millicores / 1000),
        "memory_mib": job.memory_mib,
        "phase": job.phase,
        "message": message(job),
        "problem": problem(job),
        "queue": {name: moment(value) for name, value in queue.items()} if queue else None,
        "indices": {
            "total": job.completions,
            "succeeded": counts[PartPhase.SUCCEEDED],
            "failed": counts[PartPhase.FAILED],
            "active": sum(counts[phase] for phase in LIVE) - counts[PartPhase.WAITING],
        },
        "failure": failure_json(job),
        "command": job.command if own else None,
        "notebook": programs.notebook_of(job.command) or None if own else None,
        "env": job.env if own else None,
        "repository": job.repository if own else None,
        "completions": job.completions,
        "parallelism": job.parallelism,
        "retries": job.retries,
        "final_exit_codes": job.final_exit_codes,
        "distributed": distributed_json(job),
        "checkpoints": {"volume": str(job.checkpoints)} if job.checkpoints else None,
        "sweep": sweep_json(job),
        "writes": writes_json(job),
        "priority": job.priority,
        "max_runtime_minutes": job.max_runtime_minutes,
        "notify": job.notify,
        "metrics": exposition(job.exposition),
        "ttl_hours": job.ttl_hours,
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "ended_at": moment(job.ended_at),
        "expires_at": moment(job.expires_at),
        "deleted_at": moment(job.deleted_at),
        "last_event": job.last_event,
    }


def distributed_json(job: Job) -> Json | None:
    if not job.framework:
        return None
    names = ("nodes", "processes_per_node", "framework")
    return {name: getattr(job, name) for name in names}


def sweep_json(job: Job) -> Json | None:
    if job.sweep is None:
        return None
    name = "parameters" if isinstance(job.sweep, Mapping) else "points"
    return {name: job.sweep, "parallelism": job.parallelism}


def part_json(part: Part) -> Json:
    return {
        "index": part.index,
        "parameters": part.parameters,
        "phase": part.phase,
        "attempts": part.number,
        "failures": part.failures,
        "metrics": part.metrics,
        "progress": part.progress,
    }


def progress_of(jobs: Iterable[Job], tallies: Tallies) -> dict[UUID, Json]:
    """Return how far each job is, when it will be done, and the newest values of one that has a single part."""
    jobs, now = list(jobs), timezone.now()
    done: dict[UUID, float] = defaultdict(float)
    others: Counter[UUID] = Counter()
    for job_id, of_job in tallies.items():
        for phase, (count, reported) in of_job.items():
            done[job_id] += count if phase == PartPhase.SUCCEEDED else reported
            others[job_id] += count if phase in STILL_TO_RUN else 0
    ends: dict[UUID, list[datetime | None]] = defaultdict(list)
    metrics: dict[UUID, Json] = {}
    of_interest = Part.objects.filter(Q(phase=PartPhase.RUNNING) | Q(job__completions=1), job__in=jobs)
    for part in of_interest.only("job", "phase", "run", "metrics", "progress", "pace").order_by("pk"):
        metrics[part.job_id] = part.metrics
        if part.phase == PartPhase.RUNNING:
            ends[part.job_id].append(estimate.end_of_part(part.progress, part.pace, str(part.run), now))
    found = {}
    for job in jobs:
        fraction = min(1.0, done[job.pk] / job.completions)
        eta = estimate.end_of_job(fraction, ends[job.pk], others[job.pk], job.started_at, now)
        found[job.pk] = {
            "fraction": round(fraction, 4),
            "eta": moment(eta),
            "metrics": metrics.get(job.pk, {}) if job.completions == 1 else {},
        }
    return found


def afters_of(jobs: Iterable[UUID]) -> dict[UUID, list[Json]]:
    """Return what each job waits for, or waited for."""
    found: dict[UUID, list[Json]] = defaultdict(list)
    for one in following.dependencies_of(jobs):
        found[one.job_id].append(
            {
                "job": str(one.predecessor_id),
                "name": one.predecessor.name,
                "on": one.on,
                "phase": one.predecessor.phase,
                "standing": following.standing_of(one).value,
            }
        )
    return found


def writes_json(job: Job) -> Json | None:
    if job.writes is None:
        return None
    made = job.version
    version = {"id": str(made.pk), "number": made.number, "phase": made.phase} if made else None
    return {"volume": str(job.writes.pk), "name": job.writes.name, "version": version}


def message(job: Job) -> str:
    if job.pool.cluster.unreachable_since and job.phase not in OVER:
        return story.sentence("cluster_unavailable", {})
    return story.sentence(job.message_code, job.message_data)


def problem(job: Job) -> Json | None:
    """Return what keeps it from going on; None: nothing does."""
    is_waiting = job.message_code == following.WAITS
    if job.message_code not in job.troubles and not is_waiting:
        return None
    return explained(job.message_code, job.message_data)


def failure_json(job: Job) -> Json | None:
    if job.failure is None:
        return None
    code, data = job.failure["code"], job.failure["data"]
    return explained(code, data) | {"at": job.failure["at"], "post_mortem": post_mortem_of(job.failure)}


def attempt_json(attempt: Attempt, now: devices.Devices | None = None, *, tails: bool = False) -> Json:
    """JSON of an attempt. `now`: GPUs of one that runs. `tails`: the reader may see output."""
    about = {"index": attempt.part.index, "attempt": attempt.number, "node": attempt.node, **attempt.data}
    return {
        "number": attempt.number,
        "index": attempt.part.index,
        "node": attempt.node or None,
        "gpus": list(now.uuids) if now else attempt.gpus,
        "gpu_use_percent": now.use_percent if now else attempt.gpu_use_percent,
        "exit_code": attempt.exit_code,
        "reason": attempt.reason or None,
        "message": story.sentence(attempt.reason, about) if attempt.ended_at else "",
        "started_at": moment(attempt.started_at),
        "ended_at": moment(attempt.ended_at),
        "counted": attempt.counted,
        "tail": attempt.tail if tails else None,
        "post_mortem": record_of(attempt),
        "ranks": [
            rank_json(index, attempt.members[str(index)]) for index in sorted(map(int, attempt.members))
        ],
    }


def record_of(attempt: Attempt) -> str | None:
    """Return the id of the attempt's post-mortem; None: it has none, or none any more."""
    run, ended_at = attempt.recorded_run, attempt.ended_at
    return None if run is None or ended_at is None or is_past(ended_at) else str(run)


def rank_json(index: int, member: Json) -> Json:
    return {
        "index": index,
        "node": member["node"] or None,
        "exit_code": member["exit_code"],
        "reason": member["reason"] or None,
    }


def event_json(event: Event) -> Json:
    return {
        "id": event.number,
        "run": str(event.run) if event.run else None,
        "at": moment(event.at),
        "step": None,
        "level": event.level,
        **explained(event.code, event.data),
        "data": event.data,
    }


def explained(code: str, data: Json) -> Json:
    return {"code": code, "message": story.sentence(code, data), "hint": story.hint(code, data)}

"""Take what programs report, from the lines of their output or by the API, into rows of bounded size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.locks import locked, one_at_a_time
from jobs.changing import announce
from jobs.models import Job, Part, PartPhase, Series
from quotas import ends
from quotas.models import Claim
from workloads.logs.readers import Line

from . import estimate
from .lines import Report, parse
from .series import Point, Thinned

MOST_NAMES = 32  # of a job
At = tuple[datetime, Report]


def on_lines(lines: Sequence[Line]) -> None:
    """Take the reports of these new lines once they are stored. Lines that report nothing cost no query.

    Not in the transaction that stores them: it is long, and rows of parts would stay locked for as long.
    """
    found: defaultdict[tuple[UUID, int, UUID], list[At]] = defaultdict(list)
    for line in lines:
        if line.holder_kind == Claim.Holder.JOB and (report := parse(line.text)) is not None:
            found[line.holder_id, line.index, line.run].append((line.at, report))
    if found:
        transaction.on_commit(partial(_take_all, found), robust=True)


def _take_all(found: Mapping[tuple[UUID, int, UUID], list[At]]) -> None:
    jobs = Job.objects.only("pk", "tenant_id", "nodes").in_bulk({job for job, _index, _run in found})
    for (job, index, run), reports in sorted(found.items(), key=lambda item: (item[0][0], item[0][1])):
        part, rank = divmod(index, jobs[job].nodes if job in jobs else 1)
        if rank == 0:  # of a part on several nodes, the first one speaks for all
            take(job, part, run, reports)
    for row in jobs.values():
        announce(row)


def take(job: UUID, index: int, run: UUID | None, reports: Sequence[At]) -> None:
    """Keep the values of one part in its row and its series. `run`: that of the reports; None: the present one."""
    with transaction.atomic():
        part = locked(Part.objects.filter(job=job, index=index)).first()
        if part is None:
            return
        names = allowed(part, {name for _at, report in reports for name in report.values})
        points: defaultdict[str, list[Point]] = defaultdict(list)
        for at, report in reports:
            for name in names & report.values.keys():
                points[name].append([_step(report), report.values[name], at.timestamp()])
                part.metrics[name] = report.values[name]
            if report.progress is not None and run in (None, part.run):
                part.pace = estimate.paced(part.pace, str(part.run), report.progress, at)
                part.progress = report.progress
        _extend(part, points)
        part.save(update_fields=["metrics", "progress", "pace"])
    if part.run is not None and part.phase == PartPhase.RUNNING:
        now = timezone.now()
        ends.expect(part.run, estimate.end_of_part(part.progress, part.pace, str(part.run), now), now)


def _step(report: Report) -> float:
    return -1 if report.step is None else report.step


def allowed(part: Part, names: set[str]) -> set[str]:
    """Return those of the names that the job may have: the first MOST_NAMES that its parts reported."""
    new = names - part.metrics.keys()
    if not new:
        return names
    one_at_a_time(f"jobs.metrics {part.job_id}")
    return allowed_of(part, names)


def allowed_of(part: Part, names: set[str]) -> set[str]:
    known = set(Series.objects.filter(part__job=part.job_id).values_list("name", flat=True).distinct())
    room = MOST_NAMES - len(known)
    return (names & known) | set(sorted(names - known)[: max(0, room)])


def _extend(part: Part, points: dict[str, list[Point]]) -> None:
    there = {row.name: row for row in Series.objects.filter(part=part, name__in=points)}
    rows = [there.get(name) or Series(part=part, name=name) for name in points]
    for row, new in zip(rows, points.values(), strict=True):
        thinned = Thinned(row.points, row.stride, row.seen)
        for number, point in enumerate(new):
            if point[0] < 0:  # no step was given: it is counted
                point[0] = row.seen + number
        thinned.add(new)
        row.points, row.stride, row.seen, row.newest = thinned.points, thinned.stride, thinned.seen, new[-1]
    Series.objects.bulk_create(row for row in rows if row.name not in there)
    Series.objects.bulk_update(there.values(), ["points", "newest", "stride", "seen"])

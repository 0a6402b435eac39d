"""Times in which runs' GPUs and CPUs were quiet, from figures of every age, in one query.

A step (a minute, or what older figures were thinned to) is quiet if its mean use is at most a threshold. Quiet steps
that follow one another are one interval. Where nothing was reported there is none: a gap is never quiet. Live looks
and the report ask the same query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from monitoring.figures.series import HOLDS_SECONDS
from monitoring.figures.store import SEEN_WRITTEN_EVERY
from monitoring.figures.thinning import HOUR, LEVELS, MINUTE, SECONDS_OF_A_SAMPLE

Intervals = Sequence[tuple[int, int]]
# Part of a thinned step that must have been reported.
REPORTED = 0.8
# Use that was reported so lately is use now.
NOW_SECONDS = 3 * MINUTE
# A GPU that several runs share has a track for each one's part, where the driver tells it: that is what counts then. A
# run in a MIG slice has the slice's track, and the whole GPU's, which does not count.
STEPS = """
    WITH asked AS (
        SELECT * FROM unnest(%(runs)s::uuid[], %(since)s::int[], %(until)s::int[], %(gpu)s::int[], %(cpu)s::int[],
            %(instances)s::bool[]) AS asked (run, since, until, gpu, cpu, is_instance)
    ), tracks AS MATERIALIZED (
        SELECT run, since, until, id, device, is_share, CASE device WHEN '' THEN cpu ELSE gpu END AS most
        FROM asked JOIN monitoring_track AS track ON track.runs @> ARRAY[run]
        WHERE seen_at >= to_timestamp(since - %(seen)s)
            AND (device = '' OR starts_with(device, 'MIG-') = is_instance)
    ), of_tracks AS (
        SELECT run, since, until, device, most, began, step, is_share, sum(use * samples) / sum(samples) AS use,
            bool_or(is_share) OVER (PARTITION BY run, device, began, step) AS has_share
        FROM tracks CROSS JOIN LATERAL (
            SELECT at - at %% greatest(step_seconds, %(minute)s) AS began, greatest(step_seconds, %(minute)s) AS step,
                use_thousandths::float8 AS use, samples
            FROM monitoring_figure
            WHERE track_id = id AND at < until AND use_thousandths IS NOT NULL
                AND at >= since - CASE WHEN since > %(now)s - %(raw)s THEN %(minute)s
                    WHEN since > %(now)s - %(minutes)s THEN 10 * %(minute)s ELSE %(hour)s END
                AND (step_seconds <= %(minute)s OR samples * %(sample)s >= %(reported)s * step_seconds)
            OFFSET 0
        ) AS figure
        GROUP BY run, since, until, device, most, began, step, is_share
    ), steps AS (
        SELECT * FROM of_tracks WHERE is_share = has_share
    )
"""
QUIET = """
    , lines AS (
        SELECT run, device, bool_or(use > most AND began + step > until - %(just_now)s) AS busy,
            (coalesce(range_agg(int4range(began, began + step + %(holds)s)) FILTER (WHERE use <= most), '{}')
            - coalesce(range_agg(int4range(began, began + step)) FILTER (WHERE use > most), '{}'))
            * int4multirange(int4range(since, until)) AS quiet
        FROM steps GROUP BY run, since, until, device
    )
    SELECT run, device <> '' AS is_gpu, count(*), bool_or(busy), range_intersect_agg(quiet)
    FROM lines GROUP BY run, is_gpu
"""
PEAKS = """
    SELECT run, max(use) FILTER (WHERE device <> ''), max(use) FILTER (WHERE device = '')
    FROM steps WHERE began >= since GROUP BY run
"""


@dataclass(frozen=True)
class Asked:
    """A run, the time that is looked at in seconds since 1970, the most that is quiet, and how many GPUs it has."""

    run: UUID
    since: int
    until: int
    gpu_percent: float
    cpu_cores: float
    gpus: int
    is_instance: bool = False


@dataclass(frozen=True)
class Line:
    """Times in which all GPUs of a run, or its CPU, were quiet. `is_busy`: it is in use now."""

    quiet: Intervals = ()
    is_busy: bool = False


@dataclass(frozen=True)
class Quiet:
    """Quiet times of a run. `gpu`: None for a run without GPUs."""

    cpu: Line = field(default_factory=Line)
    gpu: Line | None = None

    @property
    def both(self) -> Intervals:
        return self.cpu.quiet if self.gpu is None else intersect(self.gpu.quiet, self.cpu.quiet)


def quiet(asked: Sequence[Asked], now: int) -> dict[UUID, Quiet]:
    """Return the quiet times of each run. A GPU without figures makes the time unknown, so not quiet."""
    lines: dict[tuple[UUID, bool], Line] = {}
    gpus = {one.run: one.gpus for one in asked}
    for run, is_gpu, count, busy, times in _rows(QUIET, asked, now):
        is_whole = not is_gpu or count >= gpus[run]
        found = [(one.lower, one.upper) for one in times] if is_whole and times else []
        lines[run, is_gpu] = Line(found, bool(busy))
    return {
        one.run: Quiet(
            lines.get((one.run, False), Line()), lines.get((one.run, True), Line()) if one.gpus else None
        )
        for one in asked
    }


def peaks(asked: Sequence[Asked], now: int) -> dict[UUID, tuple[float | None, float | None]]:
    """Return the highest use of each run's GPUs in percent and of its CPU in cores, by minutes."""
    return {
        run: (None if gpu is None else gpu / 1000, None if cpu is None else cpu / 1000)
        for run, gpu, cpu in _rows(PEAKS, asked, now)
    }


def intersect(ones: Intervals, others: Intervals) -> list[tuple[int, int]]:
    """Return the times that lie in both, of intervals in order."""
    found, at, other_at = [], 0, 0
    while at < len(ones) and other_at < len(others):
        (begin, end), (other_begin, other_end) = ones[at], others[other_at]
        if max(begin, other_begin) < min(end, other_end):
            found.append((max(begin, other_begin), min(end, other_end)))
        if end <= other_end:
            at += 1
        else:
            other_at += 1
    return found


def _rows(query: str, asked: Sequence[Asked], now: int) -> list[Any]:
    if not asked:
        return []
    values: Mapping[str, Any] = {
        "runs": [one.run for one in asked],
        "since": [one.since for one in asked],
        "until": [one.until for one in asked],
        "gpu": [round(one.gpu_percent * 1000) for one in asked],
        "cpu": [round(one.cpu_cores * 1000) for one in asked],
        "instances": [one.is_instance for one in asked],
        "now": now,
        "seen": int(SEEN_WRITTEN_EVERY.total_seconds()),
        "just_now": NOW_SECONDS,
        "holds": HOLDS_SECONDS,
        "minute": MINUTE,
        "hour": HOUR,
        "raw": LEVELS[0].kept_seconds,
        "minutes": LEVELS[1].kept_seconds,
        "sample": SECONDS_OF_A_SAMPLE,
        "reported": REPORTED,
    }
    with connection.cursor() as cursor:
        cursor.execute(STEPS + query, values)
        return list(cursor.fetchall())

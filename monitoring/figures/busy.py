"""Busy time of runs' GPUs by day: the integral of their use, from figures of every age in one query.

A minute with any figure counts whole, by its mean; a minute without figures does not count. For figures thinned further
the number of reported minutes is known (thinning.py). A step that a run held in part counts in proportion. So the busy
time never exceeds the time that the run had its GPUs.

A day that is over and thinned to minutes is summed up once, for all runs; its figures are not read for this again. Days
are summed up in order, so the days without sums are the newest ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from monitoring.figures.thinning import (
    DAY,
    HOUR,
    LEVELS,
    LONGEST_SECONDS,
    MINUTE,
    SECONDS_OF_A_SAMPLE,
    horizon,
    is_free,
)
from monitoring.models import BusyDay, Figure
from quotas.accounting.used import HeldInterval, all_held

# A late figure stands beside its minute until it is thinned into it: until then the minute counts as it was.
# Track by track (LATERAL): PostgreSQL does not see how little of a track is needed, and would read all figures.
SELECT = """
    WITH done AS MATERIALIZED (
        SELECT coalesce((max(day) + 1) * %(day)s, 0) AS done FROM monitoring_busyday WHERE run IS NULL
    ), held AS MATERIALIZED (
        SELECT *
        FROM unnest(%(runs)s::uuid[], %(since)s::float8[], %(until)s::float8[], %(instances)s::bool[])
            AS held (run, begin, until, is_instance)
    ), recent AS MATERIALIZED (
        SELECT run, greatest(begin, done) AS since, until, is_instance FROM held, done WHERE until > done
    ), tracks AS MATERIALIZED (
        SELECT track.id, run, since, until, (since - %(hour)s)::int AS oldest, ceil(until)::int AS newest
        FROM recent JOIN monitoring_track AS track ON track.runs = ARRAY[run]
        WHERE NOT is_share AND device <> '' AND starts_with(device, 'MIG-') = is_instance
    ), steps AS (
        SELECT run, since, until, at, step_seconds AS step, use_thousandths::float8 AS use,
            CASE step_seconds WHEN %(minute)s THEN %(minute)s ELSE samples * %(sample)s END AS told
        FROM tracks CROSS JOIN LATERAL (
            SELECT * FROM monitoring_figure WHERE track_id = id AND at > oldest AND at < newest
                AND step_seconds >= %(minute)s AND use_thousandths IS NOT NULL
            OFFSET 0
        ) AS figure
        UNION ALL
        SELECT run, since, until, began, %(minute)s, use, %(minute)s
        FROM tracks CROSS JOIN LATERAL (
            SELECT figure.at - figure.at %% %(minute)s AS began, avg(figure.use_thousandths)::float8 AS use
            FROM monitoring_figure AS figure LEFT JOIN monitoring_figure AS thinned
                ON thinned.track_id = figure.track_id AND thinned.at = figure.at - figure.at %% %(minute)s
                AND thinned.step_seconds = %(minute)s
            WHERE figure.track_id = id AND figure.at > oldest AND figure.at < newest
                AND figure.step_seconds = 0 AND figure.use_thousandths IS NOT NULL
                AND thinned.use_thousandths IS NULL
            GROUP BY began
        ) AS minutes
    )
    SELECT run, at / %(day)s AS day, sum(least(use, 100000) / 100000 * least(told, held))
    FROM steps CROSS JOIN LATERAL (SELECT least(until, at + step) - greatest(since, at) AS held) AS part
    WHERE held > 0 GROUP BY run, day
    UNION ALL
    SELECT run, day, seconds FROM held JOIN monitoring_busyday USING (run)
    WHERE day >= floor(begin / %(day)s) AND day * %(day)s < until
"""


def busy_seconds(held: Sequence[HeldInterval]) -> dict[tuple[UUID, date], float]:
    return {(run, _midnight(day).date()): seconds for run, day, seconds in _busy(held)}


def sum_up(now: float | None = None) -> None:
    """Sum up days that are over and thinned, oldest first. Stop after LONGEST_SECONDS: the next call continues."""
    now = time.time() if now is None else now
    ends = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < ends and _sum_up_next(now):
        pass


@transaction.atomic
def _sum_up_next(now: float) -> bool:
    """Sum up one more day. Return False if none is ready."""
    if not is_free() or (day := _next_day()) is None or (day + 1) * DAY > horizon(LEVELS[0], now):
        return False
    busy = _busy(all_held(_midnight(day), _midnight(day + 1)))
    days = [BusyDay(run=run, day=day, seconds=seconds) for run, day, seconds in busy]
    BusyDay.objects.bulk_create([*days, BusyDay(day=day)])
    return True


def _next_day() -> int | None:
    """Return the next day to sum up, at first that of the oldest figure; None without figures."""
    if done := BusyDay.objects.filter(run=None).order_by("-day").first():
        return done.day + 1
    at = Figure.objects.order_by("at").values_list("at", flat=True).first()
    return None if at is None else at // DAY


def _midnight(day: int) -> datetime:
    return datetime.fromtimestamp(day * DAY, UTC)


def _busy(held: Sequence[HeldInterval]) -> list[tuple[UUID, int, float]]:
    """Return (run, day since 1970, seconds)."""
    values: dict[str, Any] = {
        "runs": [one.run for one in held],
        "since": [one.since.timestamp() for one in held],
        "until": [one.until.timestamp() for one in held],
        "instances": [one.is_instance for one in held],
        "minute": MINUTE,
        "hour": HOUR,
        "day": DAY,
        "sample": SECONDS_OF_A_SAMPLE,
    }
    with connection.cursor() as cursor:
        cursor.execute(SELECT, values)
        return list(cursor.fetchall())

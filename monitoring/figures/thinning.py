"""Thinning of figures with age: every sample for two hours, then one figure per minute, per ten minutes, per hour.

A figure is moved, not copied: it exists at one level at a time, so late figures are thinned like all others, and a
process may die anywhere. A step keeps the mean of use, power and temperature, and the maximum of memory, as memory is
what runs out. `samples` is the weight of a figure, for figures that are added to its step later. From ten minutes on, a
minute with any report weighs as if it had a sample every five seconds. So `samples` shows how much of a step's time was
reported, and a minute with an extra look weighs no more than others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from accounts.locks import forget
from clusters.models import Gpu, Node
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.figures.store import KEPT, SEEN_WRITTEN_EVERY
from monitoring.models import AgentState, BusyDay, Figure, Track, Trouble, XidEvent
from monitoring.validation import keeping

MINUTE, HOUR, DAY = 60, 3600, 86400
# Reported seconds that count as one sample, in figures of more than a minute.
SECONDS_OF_A_SAMPLE = 5


@dataclass(frozen=True)
class Level:
    """Level of age: its step, how long figures stay, and the step after; 0: they are deleted then."""

    step_seconds: int
    kept_seconds: int
    next_seconds: int
    # Piece of one transaction: some ten thousand rows of 2,000 GPUs that report every 5 seconds.
    at_once_seconds: int


LEVELS = (
    Level(0, 2 * HOUR, MINUTE, MINUTE),
    Level(MINUTE, 2 * DAY, 10 * MINUTE, 10 * MINUTE),
    Level(10 * MINUTE, 30 * DAY, HOUR, HOUR),
    Level(HOUR, int(KEPT.total_seconds()), 0, 6 * HOUR),
)
# Limit, as a worker has other tasks: the next call does the rest.
LONGEST_SECONDS = 20.0
MOST_FORGOTTEN = 10_000
LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('monitoring.thinning', 0))"
MOVE = """
    WITH old AS (
        DELETE FROM monitoring_figure WHERE step_seconds = %(step)s AND at >= %(since)s AND at < %(until)s
        RETURNING track_id, at, memory_mib, use_thousandths, power_watts, temperature_celsius,
            CASE step_seconds WHEN 60 THEN 60 / %(sample)s ELSE samples END AS samples
    )
    INSERT INTO monitoring_figure AS kept (track_id, at, memory_mib, use_thousandths, step_seconds, samples,
        power_watts, temperature_celsius)
    SELECT track_id, at - at %% %(next)s AS began, max(memory_mib),
        sum(use_thousandths::bigint * samples) / sum(samples) FILTER (WHERE use_thousandths IS NOT NULL),
        %(next)s, least(sum(samples), 32767),
        round(sum(power_watts::float8 * samples) / sum(samples) FILTER (WHERE power_watts IS NOT NULL)),
        round(sum(temperature_celsius::float8 * samples)
            / sum(samples) FILTER (WHERE temperature_celsius IS NOT NULL))
    FROM old GROUP BY track_id, began
    ON CONFLICT (track_id, at, step_seconds) DO UPDATE SET
        memory_mib = greatest(kept.memory_mib, excluded.memory_mib),
        use_thousandths = coalesce(
            (kept.use_thousandths::bigint * kept.samples + excluded.use_thousandths::bigint * excluded.samples)
                / (kept.samples + excluded.samples),
            kept.use_thousandths, excluded.use_thousandths),
        power_watts = coalesce(
            (kept.power_watts::int * kept.samples + excluded.power_watts::int * excluded.samples)
                / (kept.samples + excluded.samples),
            kept.power_watts, excluded.power_watts),
        temperature_celsius = coalesce(
            (kept.temperature_celsius::int * kept.samples
                + excluded.temperature_celsius::int * excluded.samples)
                / (kept.samples + excluded.samples),
            kept.temperature_celsius, excluded.temperature_celsius),
        samples = least(kept.samples::int + excluded.samples, 32767)
"""
DROP = "DELETE FROM monitoring_figure WHERE step_seconds = %(step)s AND at >= %(since)s AND at < %(until)s"


def thin(now: float | None = None) -> bool:
    """Move figures that are old enough, oldest first. Return True if nothing is left to do."""
    now = time.time() if now is None else now
    ends = time.monotonic() + LONGEST_SECONDS
    for level in LEVELS:
        while (since := _oldest(level, now)) is not None:
            if time.monotonic() > ends or not _move(level, since, now):
                return False
    forget_rows(now)
    return True


def on_tick(**_: object) -> None:
    """Enqueue thinning about once a minute, when one more minute is ready to move."""
    if is_due(MINUTE):
        enqueue.thin()


def is_free() -> bool:
    """Lock until the end of the transaction: one process at a time moves or sums up. Return False if locked."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
        return bool(cursor.fetchone()[0])


def horizon(level: Level, now: float) -> int:
    """Return the end of what is moved: whole steps of the next level only, so that a step gets all its figures."""
    until = int(now) - level.kept_seconds
    return until - until % (level.next_seconds or level.step_seconds)


def _oldest(level: Level, now: float) -> int | None:
    rows = Figure.objects.filter(step_seconds=level.step_seconds, at__lt=horizon(level, now))
    return rows.order_by("at").values_list("at", flat=True).first()


@transaction.atomic
def _move(level: Level, since: int, now: float) -> bool:
    """Move one bounded piece. Return False if another process is moving."""
    if not is_free():
        return False
    since -= since % level.at_once_seconds
    until = min(since + level.at_once_seconds, horizon(level, now))
    values = {"step": level.step_seconds, "next": level.next_seconds, "since": since, "until": until}
    values["sample"] = SECONDS_OF_A_SAMPLE
    with connection.cursor() as cursor:
        cursor.execute(MOVE if level.next_seconds else DROP, values)
    if level.step_seconds == 0:
        # Late figures belong to a day that was summed up without them: sum up again from that day on.
        BusyDay.objects.filter(day__gte=since // DAY).delete()
    return True


def forget_rows(now: float) -> None:
    """Delete rows that are older than any figure, old tests, and GPUs and agents whose nodes are gone."""
    keeping.forget_old(datetime.fromtimestamp(now, UTC))
    before = datetime.fromtimestamp(now, UTC) - KEPT
    old = Track.objects.filter(seen_at__lt=before - SEEN_WRITTEN_EVERY)
    forget(Track.objects.filter(pk__in=old.order_by("seen_at").values("pk")[:MOST_FORGOTTEN]))
    errors = XidEvent.objects.filter(at__lt=before).order_by("at")
    forget(XidEvent.objects.filter(pk__in=errors.values("pk")[:MOST_FORGOTTEN]))
    forget(BusyDay.objects.filter(day__lt=before.timestamp() // DAY))
    over = Trouble.objects.filter(ended_at__lt=before).order_by("ended_at")
    forget(Trouble.objects.filter(pk__in=over.values("pk")[:MOST_FORGOTTEN]))
    for model in (Gpu, AgentState):
        there = Node.objects.filter(cluster=OuterRef("cluster"), name=OuterRef("node"))
        forget(model._default_manager.filter(~Exists(there)))

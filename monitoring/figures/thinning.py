"""Less is kept of what is older: every sample for two hours, then one figure a minute, ten minutes, an hour.

A figure is moved, not copied: it is at one step of age at any time, so what comes late is thinned as everything else,
and a process may die anywhere. Of a step the mean of use, power and temperature is kept, and the most memory, as that
is what runs out. `samples` says how many a figure stands for: what is added to it later weighs as much as it should.
From ten minutes on, a minute in which anything was told weighs as if it had been told every five seconds, however often
it was: so a figure says of how much of its time it is, and a minute with a look more counts for no more than others.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from accounts.locks import forget
from clusters.models import Gpu, Node
from clusters.ticks import is_due
from monitoring import tasks
from monitoring.figures.store import KEPT, SEEN_WRITTEN_EVERY
from monitoring.models import AgentState, BusyDay, Figure, Track, Trouble, XidEvent
from monitoring.validation import keeping

MINUTE, HOUR, DAY = 60, 3600, 86400
# What of its time a figure of more than a minute stands for, in as many samples.
SECONDS_OF_A_SAMPLE = 5


@dataclass(frozen=True)
class Level:
    """Figures of this step are kept so long, and then become one for each of the next; 0: nothing is left."""

    step_seconds: int
    kept_seconds: int
    next_seconds: int
    # What one transaction takes: of 2,000 GPUs that tell every 5 seconds some ten thousand rows.
    at_once_seconds: int


LEVELS = (
    Level(0, 2 * HOUR, MINUTE, MINUTE),
    Level(MINUTE, 2 * DAY, 10 * MINUTE, 10 * MINUTE),
    Level(10 * MINUTE, 30 * DAY, HOUR, HOUR),
    Level(HOUR, int(KEPT.total_seconds()), 0, 6 * HOUR),
)
# A worker has more to do: what is left after so long is for the next time.
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
    """Move what is old enough, oldest first. Whether nothing is left to do."""
    now = time.time() if now is None else now
    ends = time.monotonic() + LONGEST_SECONDS
    for level in LEVELS:
        while (since := _oldest(level, now)) is not None:
            if time.monotonic() > ends or not _move(level, since, now):
                return False
    forget_rows(now)
    return True


def on_tick(**_: object) -> None:
    """About once a minute, as there is one more minute to move then."""
    if is_due(MINUTE):
        tasks.enqueue_thinning()


def is_free() -> bool:
    """And nobody else's until the end of the transaction: figures are moved and summed up by one process at a time."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK)
        return bool(cursor.fetchone()[0])


def horizon(level: Level, now: float) -> int:
    """Whole steps of the next age are moved, so that each is made of all that it had."""
    until = int(now) - level.kept_seconds
    return until - until % (level.next_seconds or level.step_seconds)


def _oldest(level: Level, now: float) -> int | None:
    rows = Figure.objects.filter(step_seconds=level.step_seconds, at__lt=horizon(level, now))
    return rows.order_by("at").values_list("at", flat=True).first()


@transaction.atomic
def _move(level: Level, since: int, now: float) -> bool:
    """One bounded piece. False: another process is at it."""
    if not is_free():
        return False
    since -= since % level.at_once_seconds
    until = min(since + level.at_once_seconds, horizon(level, now))
    values = {"step": level.step_seconds, "next": level.next_seconds, "since": since, "until": until}
    values["sample"] = SECONDS_OF_A_SAMPLE
    with connection.cursor() as cursor:
        cursor.execute(MOVE if level.next_seconds else DROP, values)
    if level.step_seconds == 0:
        # What came late is of a day that was summed up without it: from that day on it is done anew.
        BusyDay.objects.filter(day__gte=since // DAY).delete()
    return True


def forget_rows(now: float) -> None:
    """What nothing is kept of any more, old tests too; and GPUs and agents whose nodes are gone."""
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

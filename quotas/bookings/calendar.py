"""A week of bookings as the calendar shows it, in the reader's time zone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from django.utils import timezone

from accounts.access import Actor
from quotas.bookings import changes as bookings
from quotas.bookings.free_slots import Lane, Span
from quotas.models import Booking, Pool
from quotas.pools.nodes import nodes_of
from quotas.scheduling import as_gpus

DAY = timedelta(days=1)
# Farthest week shown: nothing is booked beyond it.
FARTHEST = timedelta(days=370)
NARROWEST = 0.006


@dataclass(frozen=True)
class Week:
    monday: date

    @classmethod
    def of(cls, text: str) -> Week:
        """Return the week of a day like 2026-03-05; of today for all else."""
        today = timezone.localdate()
        try:
            day = date.fromisoformat(text)
        except ValueError:
            day = today
        day = day if abs(day - today) <= FARTHEST else today
        return cls(day - day.weekday() * DAY)

    @property
    def midnights(self) -> list[datetime]:
        """Eight midnights in UTC. A day has 23 or 25 hours when the clock changes."""
        days = (self.monday + number * DAY for number in range(8))
        return [timezone.make_aware(datetime.combine(day, time.min)).astimezone(UTC) for day in days]

    @property
    def days(self) -> list[date]:
        return [self.monday + number * DAY for number in range(7)]

    @property
    def sunday(self) -> date:
        return self.days[-1]

    @property
    def is_this(self) -> bool:
        return self.monday <= timezone.localdate() <= self.sunday

    @property
    def previous(self) -> date:
        return self.monday - 7 * DAY

    @property
    def following(self) -> date:
        return self.monday + 7 * DAY

    def part(self, moment: datetime) -> float:
        """Return the part of the week before a moment: from 0 to 1."""
        for number, (begins, ends) in enumerate(pairwise(self.midnights)):
            if moment < ends:
                return (number + max(0.0, (moment - begins) / (ends - begins))) / 7
        return 1.0


@dataclass(frozen=True)
class Bar:
    """A booking, and its place in the week."""

    seen: bookings.Seen
    x: str
    width: str
    gpus_each: float

    @property
    def booking(self) -> Booking:
        return self.seen.booking

    @property
    def is_one_day(self) -> bool:
        return timezone.localdate(self.booking.starts_at) == timezone.localdate(self.booking.ends_at)


@dataclass(frozen=True)
class PoolWeek:
    pool: Pool
    bars: list[Bar]
    most_booked: float
    total: float


def weeks_of(actor: Actor, pools: Sequence[Pool], week: Week) -> list[PoolWeek]:
    """Return the bookings of each pool in that week. A few queries, whatever the number of pools."""
    begins, *_days, ends = week.midnights
    by_pool = bookings.seen_by_pool(actor, pools, begins, ends)
    nodes = nodes_of(pools, with_runs=False)
    return [
        PoolWeek(
            pool,
            [_bar(seen, week) for seen in by_pool[pool.pk]],
            as_gpus(_most(by_pool[pool.pk], begins, ends), pool.units_per_gpu),
            as_gpus(sum(room.units for room in nodes[pool.pk].whole), pool.units_per_gpu),
        )
        for pool in pools
    ]


def _most(rows: Iterable[bookings.Seen], begins: datetime, ends: datetime) -> int:
    """Return the units booked at once, at the busiest time."""
    spans = [
        Span(row.booking.starts_at, row.booking.ends_at, row.booking.places * row.booking.units_each)
        for row in rows
    ]
    return -Lane(0, spans).free(begins, ends)


def _bar(seen: bookings.Seen, week: Week) -> Bar:
    booking = seen.booking
    x = min(week.part(booking.starts_at), 1 - NARROWEST)
    width = max(week.part(booking.ends_at) - x, NARROWEST)
    gpus_each = as_gpus(booking.units_each, booking.pool.units_per_gpu)
    return Bar(seen, f"{100 * x:.2f}%", f"{100 * width:.2f}%", gpus_each)

"""Change a job's row under its lock: row, new events and the call to open pages in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from django.utils import timezone

from workloads import changing as workloads
from workloads.live import groups
from workloads.models import EventRow

from .models import Event, Job

Level = EventRow.Level
_tellers: list[Callable[[Event], None]] = []


def register(teller: Callable[[Event], None]) -> None:
    """Call this for each new event, once it is written, in the transaction that wrote it."""
    _tellers.append(teller)


def changing(job_id: UUID) -> AbstractContextManager[Job]:
    """Yield the row, locked; at the end save what differs, write its new events and announce them."""
    return workloads.changing(Job, job_id, _written)


def _written(job: Job) -> None:
    write_events(job)
    announce(job)


def announce(job: Job) -> None:
    groups.announce("job", job)


def add_event(
    job: Job, code: str, *, run: UUID | None = None, level: EventRow.Level = Level.INFO, **data: Any
) -> Event:
    """Add the next event, numbered without a gap. Inside `changing`, or on a new row before `write_events`."""
    job.last_event += 1
    event = Event(
        job=job, number=job.last_event, run=run, at=timezone.now(), level=level, code=code, data=data
    )
    job.new_events.append(event)
    return event


def write_events(job: Job) -> None:
    events = list(job.new_events)
    job.new_events.clear()
    Event.objects.bulk_create(events)
    for event in events:
        for tell in _tellers:
            tell(event)

"""Fill opened records: soon, and again until logs are read to their end and agents had their say, a minute at most.

Run by a worker. It may run twice, late, or be killed anywhere: each record is written whole, by one statement.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.locks import alone, forget
from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.models import PostMortem
from vitals.clock import is_near_now

from . import pods
from .gathering import gather, lines_of, missing
from .verdicts import verdict

log = logging.getLogger(__name__)

KEY = UUID("6f0c1d54-5d5e-4a51-9f6e-6d6f7274656d")  # one process fills at a time
# Ages of a record at its looks after the first. Agents report every few seconds, and logs are stored every second.
AGAIN = (timedelta(seconds=20), timedelta(seconds=65))
BATCH = 50
LONGEST_SECONDS = 60.0
# An enqueued filling that has not begun is lost: its worker died.
LOST_AFTER = timedelta(seconds=90)
AFTER_FAULT, GIVES_UP = timedelta(minutes=1), timedelta(hours=1)
FORGET_EVERY_SECONDS = 300


def on_tick(**_: object) -> None:
    """Enqueue the work if some is due, and forget what is too old, a bounded number at a time."""
    want()
    if is_due(FORGET_EVERY_SECONDS):
        pods.forget_old()
        kept = timedelta(days=settings.POST_MORTEM_DAYS)
        forget(PostMortem.objects.filter(ended_at__lt=timezone.now() - kept))


def want() -> None:
    """Enqueue the filling of due records, unless it waits or runs already."""
    now = timezone.now()
    due = PostMortem.objects.filter(due_at__lte=now)
    if due.filter(is_near_now("queued_at", now, LOST_AFTER)).exists():
        return
    with transaction.atomic():
        if due.update(queued_at=now):
            enqueue.fill_post_mortems()


def fill_due() -> int:
    """Fill the records that are due. Return their number; 0 if another process does so."""
    filled, until = 0, time.monotonic() + LONGEST_SECONDS
    with alone(KEY) as mine:
        while mine and time.monotonic() < until:
            due = PostMortem.objects.filter(due_at__lte=timezone.now()).order_by("due_at")
            rows = list(due.select_related("tenant")[:BATCH])
            for row in rows:
                if time.monotonic() < until:
                    _fill_or_postpone(row)
            filled += len(rows)
            if len(rows) < BATCH:
                break
    return filled


def _fill_or_postpone(row: PostMortem) -> None:
    """Fill the record. It is put back before, so that one which ends its worker keeps no other waiting."""
    now = timezone.now()
    later = now + AFTER_FAULT if now - row.ended_at < GIVES_UP else None
    PostMortem.objects.filter(pk=row.pk, due_at=row.due_at).update(due_at=later, queued_at=None)
    try:
        fill(row)
    except Exception:
        log.exception("the post-mortem of the run %s is filled later", row.pk)


def fill(row: PostMortem) -> None:
    """Gather what is known, and decide when the record is looked at again. One that was opened anew stays due."""
    now = timezone.now()
    age = now - row.ended_at
    lines, is_whole = lines_of(row)
    facts = gather(row)
    is_last = age >= AGAIN[-1] or (is_whole and age >= AGAIN[0])
    facts["missing"] = missing(row, facts, lines, whole=is_whole)
    texts = [one["text"] for one in lines]
    found = verdict(row.happened, row.code, row.data, row.ended_at, facts, texts)
    following = next((row.ended_at + after for after in AGAIN if after > age), None)
    same = PostMortem.objects.filter(pk=row.pk, ended_at=row.ended_at, code=row.code)
    same.update(
        facts=facts,
        lines=lines,
        gpus=[one["uuid"] for one in facts["gpus"]],
        node=row.node or next(iter(facts["nodes"]), ""),
        verdict=found.code,
        verdict_data=found.data,
        due_at=None if is_last else following,
        gathered_at=now,
    )

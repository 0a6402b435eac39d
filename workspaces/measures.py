"""Metrics of launches for /metrics: without personal names and without queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django.db import transaction

from clusters.errors import ClusterRefused, ClusterUnavailable
from vitals.figures import Counter, Histogram

from .models import Event, Step

STEP = Histogram("berth_step_seconds", "How long each step of a start took.", ("step",))
START = Histogram("berth_start_seconds", "From a start's admission until it was ready.")
LOOK = Histogram("berth_reconcile_seconds", "How long one look at a workspace took, its changes included.")
LOOK_ERRORS = Counter(
    "berth_reconcile_errors_total",
    "Looks that did not come to their end.",
    ("kind",),
    known=(("cluster away",), ("cluster refused",), ("fault",)),
)


def count_step(event: Event) -> None:
    """Measure a step that this event completes, once it is committed. Before the row begins its next step."""
    row = event.workspace
    if event.level != Event.Level.INFO or not event.step or event.step != row.step:
        return
    took = (event.at - row.step_since).total_seconds()
    transaction.on_commit(partial(STEP.observe, took, str(event.step)))
    if event.step == Step.READY and row.started_at is not None:
        took = (event.at - row.started_at).total_seconds()
        transaction.on_commit(partial(START.observe, took))


@contextmanager
def one_look() -> Iterator[None]:
    try:
        with LOOK.timed():
            yield
    except Exception as error:
        LOOK_ERRORS.count(kind_of(error))
        raise


def kind_of(error: Exception) -> str:
    if isinstance(error, ClusterUnavailable):
        return "cluster away"
    return "cluster refused" if isinstance(error, ClusterRefused) else "fault"

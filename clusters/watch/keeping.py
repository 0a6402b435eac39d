"""Looks at the rows of one kind in one cluster, in the process that watches it: for volumes and for jobs.

A row is looked at when one of its objects changes, when another process marks it (NOTIFY), when the clock finds that it
has not settled, and after a list. What changed or was marked comes first: a new process begins with all of a large
installation, and people wait for what they just did. Nothing is remembered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any
from uuid import UUID

from django.db import close_old_connections, connection
from django.db.models import QuerySet
from django.utils import timezone

from clusters.mirror import Mirror
from clusters.models import Cluster

from .working import AWAY_SECONDS, Step, Working, listening

TICK_SECONDS = 5.0
BATCH = 25
THREADS = 4  # a call that hangs holds up the rest of its batch alone


class Keeper:
    """Work beside one cluster's mirror. It begins when the mirror is complete."""

    name: str  # of what it keeps, for logs
    channel: str  # on which marks are heard

    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        self.cluster, self.mirror = cluster, mirror
        self._heard: set[UUID] = set()  # something about these changed
        self._due: set[UUID] = set()  # by the clock, or after a list
        self._again: set[UUID] = set()  # with the next tick
        self._looked_at: set[UUID] = set()  # by one of the threads at the moment
        self._some = threading.Condition()
        self._complete = False
        self._all = False
        self._ticked_at = 0.0
        keep: list[tuple[str, Step]] = [
            (self.name, partial(self._keep, thread == 0)) for thread in range(THREADS)
        ]
        steps = [(f"{self.name} marks", self._listen), *keep]
        self._work = Working(cluster.slug, steps)
        self.stopped = self._work.stopped

    # --- what is kept

    def rows(self) -> QuerySet[Any]:
        """Return all rows of the cluster that may need a look."""
        raise NotImplementedError

    def unsettled(self) -> QuerySet[Any]:
        """Return those that need one though nothing is heard of them."""
        raise NotImplementedError

    def after_list(self) -> QuerySet[Any]:
        """Return those that need one after a list: what happened before it was heard by nobody."""
        return self.rows()

    def of(self, change: str, body: dict[str, Any]) -> Iterable[UUID]:
        """Return the rows that a changed object belongs to."""
        raise NotImplementedError

    def look(self, taken: Collection[UUID]) -> Iterator[tuple[UUID, bool]]:
        """Look at these rows, until `stopped`. Yield for each that is there if it is done, or has to be tried again."""
        raise NotImplementedError

    # --- called by the watch

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        self.stopped.set()
        with self._some:
            self._some.notify_all()

    def join(self, timeout: float | None = None) -> None:
        self._work.join(timeout)

    def listed(self) -> None:
        with self._some:
            self._complete = self._all = True
            self._some.notify()

    def changed(self, change: str, body: dict[str, Any]) -> None:
        self._add(self._heard, self.of(change, body))

    # --- the threads

    def _add(self, to: set[UUID], rows: Iterable[UUID]) -> None:
        rows = list(rows)
        with self._some:
            to.update(rows)
            self._some.notify()

    def _listen(self) -> None:
        with listening(self.channel) as heard:
            self._add(self._heard, self.rows().filter(dirty_since__isnull=False).values_list("pk", flat=True))
            close_old_connections()
            while not self.stopped.is_set():
                for notice in heard.notifies(timeout=AWAY_SECONDS, stop_after=1):
                    cluster, row = notice.payload.split()
                    if cluster == str(self.cluster.pk):
                        self._add(self._heard, [UUID(row)])

    def _keep(self, clock_first: bool) -> None:
        """Look at some of what is due. What could not be done comes with the next tick."""
        taken, is_relisted = self._take(clock_first)
        not_reached, failed = set(taken), set[UUID]()
        try:
            if is_relisted:
                self._add(self._due, self.after_list().values_list("pk", flat=True))
                is_relisted = False
            if time.monotonic() - self._ticked_at >= TICK_SECONDS:
                self._ticked_at = time.monotonic()
                self._add(self._due, self._again_at_the_tick())
                self._add(self._due, self.unsettled().values_list("pk", flat=True))
            for row, is_done in self.look(taken) if taken else ():
                not_reached.discard(row)
                failed.update(() if is_done else (row,))
            not_reached.clear()  # the rest is there no more
        finally:
            self._done(taken, not_reached | failed, is_relisted)

    def _take(self, clock_first: bool) -> tuple[list[UUID], bool]:
        """Take rows that nobody looks at. One thread takes what is due by the clock first, so that it always comes."""
        with self._some:
            if not self._complete or not ((self._heard | self._due) - self._looked_at or self._all):
                self._some.wait(AWAY_SECONDS)
            if not self._complete:
                return [], False
            is_relisted, self._all = self._all, False
            first, second = (self._due, self._heard) if clock_first else (self._heard, self._due)
            free = (first - self._looked_at) or (second - self._looked_at)
            taken = sorted(free)[: min(BATCH, max(1, len(free) // THREADS))]
            self._heard.difference_update(taken)
            self._due.difference_update(taken)
            self._looked_at.update(taken)
            return taken, is_relisted

    def _again_at_the_tick(self) -> set[UUID]:
        with self._some:
            again, self._again = self._again, set()
        return again

    def _done(self, taken: Collection[UUID], again: Iterable[UUID], is_relisted: bool) -> None:
        """Let others look at the rows. `again`: to be tried again; `is_relisted`: a list was not followed up."""
        with self._some:
            self._looked_at.difference_update(taken)
            self._again.update(again)
            self._all = self._all or is_relisted
            if taken or is_relisted:  # else threads with nothing to do would wake each other for ever
                self._some.notify()


# --- marks

MARK = """
WITH chosen AS (
    SELECT id FROM {table} WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE {table} row
    SET dirty_marks = dirty_marks + 1, dirty_since = COALESCE(dirty_since, %(now)s)
    FROM chosen WHERE row.id = chosen.id
    RETURNING row.id, {cluster} AS cluster
)
SELECT pg_notify(%(channel)s, cluster || ' ' || id) FROM marked
"""


def mark(ids: Iterable[UUID], channel: str, table: str, cluster: str) -> None:
    """Ask for a look at each: something about it changed. `cluster`: the id of a row's cluster, in SQL.

    A mark is part of the caller's transaction and outlives every crash.
    """
    if ids := list(ids):
        with connection.cursor() as cursor:
            statement = MARK.format(table=table, cluster=cluster)
            cursor.execute(statement, {"ids": ids, "now": timezone.now(), "channel": channel})

"""django-q2's PostgreSQL broker, woken by NOTIFY instead of polling: a task starts within milliseconds.

The database's clock alone decides whether a task is due. By the machines' own clocks, a task queued on a machine
whose clock is ahead would wait until the worker's clock reaches that time. The queue holds tasks as JSON.
"""

import logging
import time
from typing import Any

import psycopg
from django.db import OperationalError, close_old_connections, connections
from django.db.models.functions import Now
from django.dispatch import Signal
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from clusters.errands.enqueue import QUEUE as FIRST
from portal.channel_layer import connection_parameters
from portal.queue import data
from vitals.pulse import beat_beside

log = logging.getLogger(__name__)

NOTIFY_CHANNEL = "berth_tasks"
# Serving of the queue begins; the previous server may have died while it had tasks. No arguments.
began = Signal()
# A lock that ends later than a new one would was written before the clock was set back: it does not count.
TAKE = """
UPDATE django_q_ormq SET lock = statement_timestamp() + make_interval(secs => %(retry)s) WHERE id = (
    SELECT id FROM django_q_ormq
    WHERE key IN (%(key)s, %(first)s)
      AND (
        lock <= statement_timestamp() OR lock > statement_timestamp() + make_interval(secs => %(retry)s)
      )
    ORDER BY key <> %(first)s, id LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id, payload
"""


class NotifyBroker(ORM):  # type: ignore[misc]
    """Broker whose enqueue notifies in the caller's transaction. Dequeue waits for it, at most one polling interval."""

    _connection: psycopg.Connection[Any] | None = None
    _has_begun = False

    def enqueue(self, task: Any) -> Any:
        queued = self.get_connection().create(key=self.list_key, payload=data.pack(task), lock=Now())
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [NOTIFY_CHANNEL])
        return queued.pk

    def dequeue(self) -> Any:
        try:
            connection = self._listen()
            if not self._has_begun:
                began.send(sender=NotifyBroker)
                beat_beside("queue")
                self._has_begun = True
            taken = self._take()
            if taken is None:
                for _ in connection.notifies(timeout=Conf.POLL, stop_after=1):
                    pass
            return taken and self._readable(taken)
        except (psycopg.OperationalError, OperationalError):
            # The database is away: otherwise django-q2 would end this process and lose ten seconds.
            self._connection = None
            close_old_connections()
            time.sleep(0.5)
            return None

    def _listen(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(**connection_parameters(), autocommit=True)
            self._connection.execute(f"LISTEN {NOTIFY_CHANNEL}")
        return self._connection

    def _take(self) -> list[tuple[int, str]] | None:
        """Take an errand, else the first waiting task; two callers at once get two different ones."""
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(TAKE, {"key": self.list_key, "first": FIRST, "retry": Conf.RETRY})
            return cursor.fetchall() or None

    def _readable(self, taken: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the tasks as django-q2 reads them. Drop what is no task of Berth's: nothing of it is run."""
        found = []
        for pk, payload in taken:
            try:
                found.append((pk, data.unpack(payload)))
            except data.NoTask as why:
                log.warning("a task in the queue is dropped: %s", why)
                self.fail(pk)
        return found

"""django-q2's PostgreSQL broker, woken by NOTIFY instead of polling: a task starts within milliseconds."""

import time
from typing import Any

import psycopg
from django.db import OperationalError, close_old_connections, connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from portal.channel_layer import connection_parameters
from vitals.pulse import beat_beside

NOTIFY_CHANNEL = "berth_tasks"


class NotifyBroker(ORM):  # type: ignore[misc]
    """Enqueue notifies inside the caller's transaction; dequeue waits for that, at most the polling interval."""

    _connection: psycopg.Connection[Any] | None = None
    _beats = False

    def enqueue(self, task: Any) -> Any:
        key = super().enqueue(task)
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [NOTIFY_CHANNEL])
        return key

    def dequeue(self) -> Any:
        if not self._beats:
            beat_beside("queue")
            self._beats = True
        try:
            connection = self._listen()
            taken = self._take()
            if taken is None:
                for _ in connection.notifies(timeout=Conf.POLL, stop_after=1):
                    pass
            return taken
        except (psycopg.OperationalError, OperationalError):
            # The database went away: django-q2 would end this process and lose ten seconds.
            self._connection = None
            close_old_connections()
            time.sleep(0.5)
            return None

    def _listen(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(**connection_parameters(), autocommit=True)
            self._connection.execute(f"LISTEN {NOTIFY_CHANNEL}")
        return self._connection

    def _take(self) -> Any:
        """What the parent finds now, without its sleep on an empty queue."""
        poll, Conf.POLL = Conf.POLL, 0
        try:
            return super().dequeue()
        finally:
            Conf.POLL = poll

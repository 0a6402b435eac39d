"""Changes in a cluster, gathered and announced together.

One start makes thirty changes within a second, a hundred starts make thousands. Announced one by one, they would keep
the database busier than the starts themselves.
"""

from __future__ import annotations

import logging
import threading

from django.db import close_old_connections, connection

from clusters import measures, signals
from clusters.models import Cluster
from clusters.watch.announcements import DATABASE_AWAY, send_signal
from clusters.watch.skipping import skip
from clusters.watch.watching import Changed

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.05
PAUSE_AFTER_FAULT_SECONDS = 1.0


class Changes(threading.Thread):
    """Thread that announces the first change at once, later ones 50 ms apart; per object only its last state.

    A crash loses nothing: the next process that watches lists everything anew.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name=f"{cluster.slug}/changes", daemon=True)
        self._cluster = cluster
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._stopped = threading.Event()
        self._pending: dict[str, Changed] = {}

    def add(self, step: Changed) -> None:
        with self._lock:
            self._pending[step.body["metadata"]["uid"]] = step
        self._some.set()

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            self._some.set()

    def run(self) -> None:
        while self._some.wait() and not self._stopped.is_set():
            pause = PAUSE_SECONDS if self._tell() else PAUSE_AFTER_FAULT_SECONDS
            close_old_connections()  # into the pool, for other threads
            self._stopped.wait(pause)
        connection.close()

    def _tell(self) -> bool:
        """Announce the pending changes. If that fails, keep them pending and return False."""
        with self._lock:
            pending, self._pending = self._pending, {}
            if not self._stopped.is_set():  # once stopped, `_some` stays set, or `run` would wait for ever
                self._some.clear()
        try:
            self._tell_all(list(pending.values()))
            return True
        except DATABASE_AWAY as error:
            logger.warning("the database is away, told again: %s", error)
        except Exception:
            logger.exception("%s: a fault, told again", self.name)
        with self._lock:
            self._pending = pending | self._pending
        self._some.set()
        return False

    def _tell_all(self, changes: list[Changed]) -> None:
        """Announce changes. If a receiver fails, repeat by halves, so that only the change at fault is skipped."""
        if send_signal(signals.objects_changed, cluster=self._cluster, changes=changes):
            for step in changes:
                measures.observe_lag(self._cluster.slug, step)
        elif len(changes) > 1:
            middle = len(changes) // 2
            self._tell_all(changes[:middle])
            self._tell_all(changes[middle:])
        else:
            body = changes[0].body
            skip(self._cluster.slug, body["kind"], body["metadata"], "nobody could take it")

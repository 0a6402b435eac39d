"""What changes in a cluster, told together: one start makes thirty changes within a second, and a hundred of them
as many thousand. Told one by one, they would keep the database busier than the starts themselves.
"""

from __future__ import annotations

import logging
import threading

from django.db import connection

from clusters import measures, signals
from clusters.announcements import DATABASE_AWAY, tell
from clusters.models import Cluster
from clusters.skipping import skip
from clusters.watching import Changed

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.05
PAUSE_AFTER_FAULT_SECONDS = 1.0


class Changes(threading.Thread):
    """The first is told at once, what comes in the moment after it together; of each object only its last state.

    Nothing is lost with this process: whoever watches next lists everything anew.
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
            self._stopped.wait(PAUSE_SECONDS if self._tell() else PAUSE_AFTER_FAULT_SECONDS)
        connection.close()

    def _tell(self) -> bool:
        """Whether it could be written down."""
        with self._lock:
            pending, self._pending = self._pending, {}
            if not self._stopped.is_set():  # or nobody would wake it to its end
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
        """Where somebody failed on them, told once more by halves: one with nonsense in it keeps no other from them."""
        if tell(signals.objects_changed, cluster=self._cluster, changes=changes):
            for step in changes:
                measures.dealt_with(self._cluster.slug, step)
        elif len(changes) > 1:
            middle = len(changes) // 2
            self._tell_all(changes[:middle])
            self._tell_all(changes[middle:])
        else:
            body = changes[0].body
            skip(self._cluster.slug, body["kind"], body["metadata"], "nobody could take it")

"""Signals about clusters, gathered from many threads for a moment so that each is sent once."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections
from django.dispatch import Signal

from clusters.models import Cluster

logger = logging.getLogger(__name__)

GATHERING_SECONDS = 0.2
# The database is gone or restarting, or we lost a deadlock: a retry a moment later works.
DATABASE_AWAY = (OperationalError, InterfaceError)


class Announcements:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._pending: dict[tuple[int, Any], tuple[Signal, Cluster]] = {}

    def add(self, signal: Signal, cluster: Cluster) -> None:
        with self._lock:
            self._pending[id(signal), cluster.pk] = signal, cluster
        self._some.set()

    def send_pending(self, *, wait_seconds: float) -> None:
        """Wait at most that long for a signal, then send all that are pending."""
        if not self._some.wait(wait_seconds):
            return
        time.sleep(GATHERING_SECONDS)
        with self._lock:
            pending, self._pending = self._pending, {}
            self._some.clear()
        for signal, cluster in pending.values():
            try:
                send_signal(signal, cluster=cluster)
            except DATABASE_AWAY as error:
                logger.warning("the database is away, told again: %s", error)
                self.add(signal, cluster)


def send_signal(signal: Signal, **arguments: Any) -> bool:
    """Send to all receivers, and log those that fail. Return True if none failed.

    Raises the database's error if a receiver failed on it: the signal has to be sent again.
    """
    close_old_connections()
    answers = signal.send_robust(sender=Cluster, **arguments)
    for _, answer in answers:
        if isinstance(answer, DATABASE_AWAY):
            raise answer
    failed = [(receiver, answer) for receiver, answer in answers if isinstance(answer, Exception)]
    for receiver, answer in failed:
        logger.error("%s failed on a signal", getattr(receiver, "__qualname__", receiver), exc_info=answer)
    return not failed

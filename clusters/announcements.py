"""What many threads find at once, told once: signals about a cluster, gathered for a moment and then sent."""

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
# Gone, restarting, or a deadlock that we lost: the same works a moment later.
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
        """Wait for something to tell, at most that long, and tell it."""
        if not self._some.wait(wait_seconds):
            return
        time.sleep(GATHERING_SECONDS)
        with self._lock:
            pending, self._pending = self._pending, {}
            self._some.clear()
        for signal, cluster in pending.values():
            try:
                tell(signal, cluster=cluster)
            except DATABASE_AWAY as error:
                logger.warning("the database is away, told again: %s", error)
                self.add(signal, cluster)


def tell(signal: Signal, **arguments: Any) -> bool:
    """Send; a receiver that fails is logged and keeps nobody from hearing. Whether none failed.

    Raises the database's error where one could not write down what it heard: it has to be told again.
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

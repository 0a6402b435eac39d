"""A thread that repeats one step until it is stopped."""

from __future__ import annotations

import logging
import threading

from django.db import close_old_connections, connection

logger = logging.getLogger(__name__)


class Repeating(threading.Thread):
    """Thread that calls `step` until `stopped` is set. It survives every fault: nothing else would start it again."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.stopped = threading.Event()

    def run(self) -> None:
        pause_seconds = 0.0
        while not self.stopped.wait(pause_seconds):
            try:
                pause_seconds = self.step()
            except Exception:
                logger.exception("%s: a fault, asking again", self.name)
                pause_seconds = self.pause_after_fault()
            close_old_connections()  # into the pool, for other threads
        connection.close()

    def step(self) -> float:
        """Do the work once. Return the seconds until the next time."""
        raise NotImplementedError

    def pause_after_fault(self) -> float:
        """Return the seconds until the next time after a step that failed."""
        raise NotImplementedError

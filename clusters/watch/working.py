"""Threads of the work beside a cluster's mirror: they go on after every fault, and hear what other processes notify."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

import psycopg
from django.db import InterfaceError, OperationalError, close_old_connections, connection, connections

log = logging.getLogger(__name__)

AWAY_SECONDS = 1.0
Step = Callable[[], None]


class Working:
    """Threads that repeat a step each until they are stopped. A step ends by itself, after a second or so."""

    def __init__(self, name: str, steps: Iterable[tuple[str, Step]]) -> None:
        self.stopped = threading.Event()
        self._name = name
        self._threads = [
            threading.Thread(target=self._until_stopped, args=[step], name=f"{name}/{own}", daemon=True)
            for own, step in steps
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self, timeout: float | None = None) -> None:
        end = time.monotonic() + (timeout or 0.0)
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _until_stopped(self, step: Step) -> None:
        while not self.stopped.is_set():
            try:
                step()
                close_old_connections()  # into the pool, for other threads
                continue
            except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
                log.warning("%s: the database is away: %s", self._name, error)
            except Exception:
                log.exception("%s: a fault, tried again", self._name)
            connection.close()
            self.stopped.wait(AWAY_SECONDS)
        connection.close()


def listening(channel: str) -> psycopg.Connection[tuple[str, ...]]:
    """Return a connection of its own that hears what is notified on the channel."""
    parameters = connections["default"].get_connection_params()
    own = {
        key: value for key, value in parameters.items() if key not in ("cursor_factory", "context", "pool")
    }
    heard = psycopg.connect(**own, autocommit=True)
    heard.execute(f"LISTEN {channel}")
    return heard

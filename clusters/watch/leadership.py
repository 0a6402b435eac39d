"""Leadership of one process while others stand by: a PostgreSQL advisory lock that dies with its connection.

The lock has a connection of its own, which never reconnects by itself: a new connection would not hold the lock.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg
from django.db import Error, connections

from vitals.pulse import show_life

logger = logging.getLogger(__name__)

LOCK = 0x62657274685F77  # "berth_w", of the watch

# Both ends notice within seconds when the other vanishes.
_CLIENT_SETTINGS: dict[str, Any] = {
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
    "connect_timeout": 5,
}
_SERVER_SETTINGS = (
    "SET tcp_keepalives_idle = 3",
    "SET tcp_keepalives_interval = 1",
    "SET tcp_keepalives_count = 3",
    "SET idle_session_timeout = 0",
)


class Leadership:
    def __init__(self, lock: int = LOCK) -> None:
        self._lock = lock
        self._connection: psycopg.Connection[Any] | None = None

    def take(self) -> bool:
        """Try to lead. Return False while another process leads or the database is away. Who stands by lives, too."""
        show_life()
        try:
            if self._connection is None:
                self._connection = self._connect()
            row = self._connection.execute("SELECT pg_try_advisory_lock(%s)", [self._lock]).fetchone()
        except (psycopg.Error, Error) as error:
            logger.warning("cannot ask for the lead: %s", error)
            self.give_up()
            return False
        return bool(row and row[0])

    def still_held(self) -> bool:
        """Return True while the lock's connection lives: PostgreSQL holds the lock exactly as long."""
        if self._connection is None:
            return False
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error as error:
            logger.warning("lost the lead: %s", error)
            self.give_up()
            return False
        return True

    def give_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[Any]:
        database = connections["default"]
        parameters = database.get_connection_params()
        for of_django in ("cursor_factory", "context"):
            parameters.pop(of_django, None)
        connection = psycopg.connect(**{**parameters, **_CLIENT_SETTINGS, "autocommit": True})
        for setting in _SERVER_SETTINGS:
            connection.execute(setting)
        return connection

"""A command that runs a part of Berth. It begins once its database answers, has all tables, and takes this release.

Parts start in any order: before the database after a power cut, before `migrate` during an upgrade. A part that exited
would be started again with longer and longer pauses.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Max

from vitals.models import Release
from vitals.pulse import show_begin, show_life
from vitals.release import too_old

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0


class PartCommand(BaseCommand):
    # They load every page and form, which a part never shows: `migrate` and the tests run them.
    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Wait for the database, then run the part. SIGTERM and SIGINT end the wait and the process."""
        stopped = threading.Event()
        before = {
            number: signal.signal(number, lambda *_: stopped.set())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        wait_until_ready(stopped.wait)
        if stopped.is_set():
            sys.exit(0)
        show_begin()
        for number, handler in before.items():
            signal.signal(number, handler)
        result: str | None = super().execute(*args, **options)
        return result


def wait_until_ready(is_stopped: Callable[[float], bool]) -> None:
    """Return when nothing is missing, or when `is_stopped`, which waits so many seconds, returns True."""
    told = ""
    show_life()
    while missing := what_is_missing():
        if missing != told:
            logger.warning("waiting: %s", missing)
        told = missing
        show_life()
        if is_stopped(PAUSE_SECONDS):
            return


def what_is_missing() -> str:
    """Return why the part cannot start yet; empty if it can."""
    try:
        loader = MigrationLoader(connection)
        missing = set(loader.disk_migrations) - set(loader.applied_migrations)
        if missing:
            return f"{len(missing)} database migrations are missing: run manage.py migrate"
        return too_old(Release.objects.aggregate(oldest=Max("oldest"))["oldest"] or 0)
    except (DatabaseError, InterfaceError) as error:
        return f"the database is away: {error}"
    finally:
        connection.close()

"""`manage.py migrate`, refused for a database that Berth could not work with, or that another version of it made.

It writes into the database which release made its tables, and which is the oldest one that works on them. A migration
that waits for a table holds up everybody who wants the table after it, so it waits shortly, again and again.

Afterwards each part's own account of the database, if there is one, gets its rights (`portal/management/rights.py`).
"""

import time
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from psycopg.errors import LockNotAvailable

from portal.environment import BASE_DIR, state_dir
from portal.management import rights
from vitals.models import Release
from vitals.pulse import SILENT_AFTER_SECONDS
from vitals.release import OLDEST, RELEASE

OLDEST_POSTGRESQL = 15
# Exit code of what another try would not change: the Job of deploy/chart then fails at once.
REFUSED = 2
# How long a migration waits for a lock, and how long others have the table then. It gives up after five minutes.
LOCK_TIMEOUT = "2s"
PAUSE_SECONDS = 3.0
TRIES = 60
# A database of before 0002 has no column for it.
RELEASES_AT_WORK = """
SELECT DISTINCT part, coalesce((to_jsonb(vitals_process)->>'release')::int, 1) FROM vitals_process
WHERE abs(extract(epoch FROM now() - seen_at)) < %s ORDER BY 1, 2
"""


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raise a CommandError if the database does not answer, or has migrations that this version does not know.

        Do nothing if a newer release migrated it and takes this one: an installation goes back that way.
        """
        database = options["database"]
        self._connection = connections[database]
        try:
            self._connection.ensure_connection()
        except OperationalError as error:
            raise CommandError(
                f"The database does not answer: {error}. Is DATABASE_URL right, and may Berth's pods reach its port?"
            ) from None
        if unfit := unfit_database(database):
            raise CommandError(unfit, returncode=REFUSED)
        unknown, missing = differences(database)
        if unknown and not missing and (newer := newer_release_that_takes_this(database)):
            self.stdout.write(
                f"Release {newer} of Berth made the tables, and they take this release {RELEASE}: nothing to do."
            )
            return None
        if unknown:
            raise CommandError(
                f"The database was made by another version of Berth: {', '.join(unknown)} is not part of this one."
                f" Install that version, or begin anew: for a trial, delete {state_dir()}.",
                returncode=REFUSED,
            )
        if missing and (left_behind := parts_left_behind(database)):
            raise CommandError(left_behind, returncode=REFUSED)
        result = self._migrate(*args, **options)
        if not differences(database)[1]:
            Release.write(database)
        only_told = options["plan"] or options["check_unapplied"]
        accounts = [] if only_told else rights.grant(database)
        if accounts and options["verbosity"]:
            self.stdout.write(f"Rights in the database: {', '.join(accounts)}.")
        return result

    def _migrate(self, *args: Any, **options: Any) -> str | None:
        """Migrate. Raise CommandError if a table is in use all the time: what was applied stays, and is not lost."""
        for _ in range(TRIES):
            try:
                result: str | None = super().handle(*args, **options)
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                self._limit_waits("0")
                self.stderr.write("Another transaction uses a table that changes: tried again in a moment.")
                time.sleep(PAUSE_SECONDS)
            else:
                self._limit_waits("0")
                return result
        raise CommandError(
            "A transaction that goes on and on uses a table that changes. Look for it in pg_stat_activity, such as a "
            "backup, and run this again: it goes on from here."
        )

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Limit the wait for locks. A migration without a transaction, as of an index, waits as long as it has to."""
        if migration is not None and action in ("apply_start", "unapply_start"):
            self._limit_waits(LOCK_TIMEOUT if migration.atomic else "0")
        super().migration_progress_callback(action, migration, fake)

    def _limit_waits(self, limit: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [limit])


def unfit_database(database: str) -> str:
    """Return why Berth could not work with this database, and what to do; empty if it can."""
    with connections[database].cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
        )
        version, encoding = cursor.fetchone()
    if version < OLDEST_POSTGRESQL * 10000:
        return (
            f"The database is PostgreSQL {version // 10000}; Berth needs {OLDEST_POSTGRESQL} or newer. "
            "Upgrade it with pg_upgrade, or set DATABASE_URL to a newer one."
        )
    if encoding != "UTF8":
        return (
            f"The database's encoding is {encoding}: names in most languages could not be written. Make one with "
            "CREATE DATABASE berth ENCODING 'UTF8' TEMPLATE template0, and set DATABASE_URL to it."
        )
    return ""


def differences(database: str) -> tuple[list[str], list[str]]:
    """Return applied migrations of Berth's own apps that have no file, and those with a file that are not applied."""
    loader = MigrationLoader(connections[database])
    ours = {app.label for app in apps.get_app_configs() if Path(app.path).parent == BASE_DIR}
    known, applied = set(loader.disk_migrations), set(loader.applied_migrations)
    unknown, missing = (
        sorted(f"{app}.{name}" for app, name in these if app in ours)
        for these in (applied - known, known - applied)
    )
    return unknown, missing


def newer_release_that_takes_this(database: str) -> int | None:
    newer = Release.objects.using(database).filter(number__gt=RELEASE, oldest__lte=RELEASE)
    return newer.values_list("number", flat=True).first()


def parts_left_behind(database: str) -> str:
    """Return why parts of Berth that are at work could not go on after the migration; empty if they can."""
    with connections[database].cursor() as cursor:
        cursor.execute("SELECT to_regclass('vitals_process')")
        if cursor.fetchone() == (None,):
            return ""
        cursor.execute(RELEASES_AT_WORK, [SILENT_AFTER_SECONDS])
        behind = [f"{part} (release {release})" for part, release in cursor.fetchall() if release < OLDEST]
    if not behind:
        return ""
    return (
        f"Parts of Berth are at work that are too old for the new tables: {', '.join(behind)}. Upgrade one release at "
        f"a time: install release {OLDEST} first. Or stop all parts, and run this again "
        f"{SILENT_AFTER_SECONDS:.0f} seconds later."
    )

"""`manage.py migrate`, refused for a database that Berth could not work with, or that another version of it made.

Afterwards each part's own account of the database, if there is one, gets its rights (`portal/management/rights.py`).
"""

from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from portal.environment import BASE_DIR, state_dir
from portal.management import rights

OLDEST_POSTGRESQL = 15


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raise a CommandError if the database has migrations of Berth's that this version does not know."""
        if unfit := unfit_database(options["database"]):
            raise CommandError(unfit)
        if unknown := unknown_migrations(options["database"]):
            raise CommandError(
                f"The database was made by another version of Berth: {', '.join(unknown)} is not part of this one."
                f" Install that version, or begin anew: for a trial, delete {state_dir()}."
            )
        result: str | None = super().handle(*args, **options)
        only_told = options["plan"] or options["check_unapplied"]
        accounts = [] if only_told else rights.grant(options["database"])
        if accounts and options["verbosity"]:
            self.stdout.write(f"Rights in the database: {', '.join(accounts)}.")
        return result


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


def unknown_migrations(database: str) -> list[str]:
    """Return the names of applied migrations of Berth's own apps that have no file."""
    loader = MigrationLoader(connections[database])
    ours = {app.label for app in apps.get_app_configs() if Path(app.path).parent == BASE_DIR}
    known = loader.disk_migrations
    unknown = set(loader.applied_migrations) - set(known)
    return sorted(f"{app}.{name}" for app, name in unknown if app in ours)

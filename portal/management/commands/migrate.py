"""`manage.py migrate`, refused for a database that another version of Berth made."""

from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from portal.environment import BASE_DIR, state_dir


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raise a CommandError if the database has migrations of Berth's that this version does not know."""
        if unknown := unknown_migrations(options["database"]):
            raise CommandError(
                f"The database was made by another version of Berth: {', '.join(unknown)} is not part of this one."
                f" Install that version, or begin anew: for a trial, delete {state_dir()}."
            )
        result: str | None = super().handle(*args, **options)
        return result


def unknown_migrations(database: str) -> list[str]:
    """Return the names of applied migrations of Berth's own apps that have no file."""
    loader = MigrationLoader(connections[database])
    ours = {app.label for app in apps.get_app_configs() if Path(app.path).parent == BASE_DIR}
    known = loader.disk_migrations
    unknown = set(loader.applied_migrations) - set(known)
    return sorted(f"{app}.{name}" for app, name in unknown if app in ours)

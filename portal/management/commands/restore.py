"""`manage.py restore FILE`: the database as it was when a backup was taken."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.management import backups


class Command(BaseCommand):
    help = "Fill the database from a backup: all of it, or nothing. Stop all parts of Berth first."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("file")
        parser.add_argument("--check", action="store_true", help="only say if it could be restored here")
        parser.add_argument("--replace", action="store_true", help="lose what the database holds now")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with zipfile.ZipFile(options["file"]) as archive:
                if options["check"]:
                    described = backups.check(archive)
                    self.stdout.write(f"Whole, {told(described)}. It can be restored here.")
                    return
                described = backups.restore(archive, replace=options["replace"])
        except (OSError, zipfile.BadZipFile, zlib.error) as error:
            raise CommandError(f"{options['file']} is damaged or no backup: {error}") from None
        except backups.Unusable as reason:
            raise CommandError(str(reason)) from None
        self.stdout.write(
            f"Restored, {told(described)}. Start the worker and the watcher, then open Drift in the admin: it "
            "lists what the clusters hold that was made since, and what is missing."
        )


def told(described: backups.Description) -> str:
    return f"taken {backups.age(described):.1f} hours ago, {len(described.tables)} tables"

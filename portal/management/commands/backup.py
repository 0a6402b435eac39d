"""`manage.py backup FILE`: the database of this moment, as one file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.management import backups


class Command(BaseCommand):
    help = "Write a backup of the database into a file; - writes it to the standard output."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("file", help="the file to write, such as berth.zip, or -")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["file"] == "-":
            backups.write(sys.stdout.buffer)
            return
        path = Path(options["file"])
        beside = path.with_name(f".{path.name}.part")
        try:
            # It holds the work of everybody: nobody else on this machine may read it.
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                described = backups.write(file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise CommandError(f"{path} could not be written: {error}") from None
        self.stdout.write(
            f"{path}: {len(described.tables)} tables, {path.stat().st_size >> 20} MiB. Keep it, and in another "
            "place BERTH_SECRET_KEY, which is not in it."
        )

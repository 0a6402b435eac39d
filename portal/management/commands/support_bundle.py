"""`manage.py support_bundle FILE`: what helps somebody else to find a fault, without secrets and people's names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.management import support


class Command(BaseCommand):
    help = "Write versions, figures, findings and counts of faults into a zip file; - writes it to the standard output."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("file", help="the file to write, such as support.zip, or -")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["file"] == "-":
            support.write(sys.stdout.buffer)
            return
        try:
            with Path(options["file"]).open("wb") as file:
                names = support.write(file)
        except OSError as error:
            raise CommandError(f"{options['file']} could not be written: {error}") from None
        self.stdout.write(f"{options['file']}: {', '.join(names)}. Look through it before you pass it on.")

"""`manage.py doctor`: is every cluster fit for Berth? One line per finding, exit code 1 if something is missing."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from clusters.doctor import Level, examine
from clusters.models import Cluster


class Command(BaseCommand):
    help = "Check connection, version, rights, storage, nodes, addresses and isolation of the clusters."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", metavar="SLUG", help="only this one")

    def handle(self, *args: Any, **options: Any) -> None:
        clusters = Cluster.objects.all()
        if options["cluster"]:
            clusters = clusters.filter(slug=options["cluster"])
        if not clusters:
            raise CommandError(_("There is no such cluster. Add one in the administration pages."))
        missing = False
        for cluster in clusters:
            self.stdout.write(f"{cluster.slug}:")
            for finding in examine(cluster):
                self.stdout.write(f"  {finding.level.value:<5} {finding.message}")
                if finding.hint:
                    self.stdout.write(f"        {finding.hint}")
                missing = missing or finding.level == Level.FAIL
        if missing:
            sys.exit(1)

"""`manage.py doctor`: check if clusters are fit for Berth. One line per finding, exit code 1 if anything is missing.

With --prove-isolation it first tries two pods of two tenants against each other, which takes a minute or two.
"""

from __future__ import annotations

import sys
from textwrap import indent
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from accounts.directory import examining
from accounts.directory.configuration import Directory
from accounts.errors import Refusal
from clusters.doctor import Finding, Level, by_check, keeping, proving
from clusters.errors import ClusterUnavailable
from clusters.models import Cluster


class Command(BaseCommand):
    help = "Say what of a cluster is fit for Berth, what could be better, and what is missing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", metavar="SLUG", help="only this one")
        parser.add_argument(
            "--prove-isolation",
            action="store_true",
            help="first run two small pods in namespaces of their own, and see what one reaches of the other",
        )
        parser.add_argument(
            "--image",
            default="",
            metavar="REFERENCE",
            help="an image with Python 3 for these pods; by default the first one of the catalogue",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        clusters = Cluster.objects.all()
        missing = (
            settings.LDAP is not None and not options["cluster"] and self._examine_directory(settings.LDAP)
        )
        if options["cluster"]:
            clusters = clusters.filter(slug=options["cluster"])
        if not clusters:
            raise CommandError(_("There is no such cluster. Add one in the administration pages."))
        for cluster in clusters:
            if options["prove_isolation"]:
                self._prove(cluster, options["image"])
            try:
                findings = keeping.examined(cluster)
            except ClusterUnavailable as error:
                findings = keeping.unexamined(error)
            self.stdout.write(f"{cluster.slug}:")
            for name, rows in by_check(findings):
                self.stdout.write(f"  {name}")
                for finding in rows:
                    self._say(finding)
            missing = missing or any(finding.level == Level.FAIL for finding in findings)
        if missing:
            sys.exit(1)

    def _examine_directory(self, directory: Directory) -> bool:
        """Print what is wrong with the LDAP directory. Return True if something is missing."""
        findings = list(examining.examined(directory))
        self.stdout.write(f"LDAP ({directory.name}):")
        for finding in findings:
            self._say(Finding(Level(finding.level), finding.message, finding.hint))
        return any(finding.level == Level.FAIL.value for finding in findings)

    def _prove(self, cluster: Cluster, image: str) -> None:
        try:
            proving.prover().wait(proving.prover().start(None, cluster, image))
        except Refusal as refusal:
            raise CommandError(f"{refusal.message} {refusal.hint}".strip()) from refusal

    def _say(self, finding: Finding) -> None:
        self.stdout.write(f"    {finding.level.value:<5} {finding.message}")
        if finding.hint:
            self.stdout.write(f"          {finding.hint}")
        if finding.yaml:
            self.stdout.write(indent(finding.yaml, " " * 12))

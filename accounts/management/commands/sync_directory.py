"""`manage.py sync_directory`: compare accounts with the LDAP directory now, as the worker does every night."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.directory import sync
from accounts.directory.sync import Outcome


class Command(BaseCommand):
    help = "End what left the LDAP directory, activate again who is back, and let roles follow groups."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="change nothing, say what would happen")
        parser.add_argument(
            "--force", action="store_true", help="also if very many people would leave at once"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.LDAP is None:
            raise CommandError("No LDAP directory is set (BERTH_LDAP_URL).")
        report = sync.run(settings.LDAP, dry_run=options["dry_run"], force=options["force"])
        if report.outcome == Outcome.FAILED and not report.failed:
            raise CommandError(f"Nothing was changed: {report.reason}.")
        for names, text in (
            (report.left, "left the directory"),
            (report.returned, "is back"),
            (report.changed, "has another name, address or role"),
        ):
            for name in names:
                self.stdout.write(f"{name}: {text}")
        for slug in report.without_owner:
            self.stdout.write(f"{slug}: no owner is left; make somebody an owner")
        if report.outcome == Outcome.HELD_BACK:
            raise CommandError(f"Nothing was changed: {report.reason}. If they really left, add --force.")
        if report.failed:
            raise CommandError(f"{report.reason}. The others are done.")
        text = "would change" if options["dry_run"] else "changed"
        changed = len(report.left) + len(report.returned) + len(report.changed)
        self.stdout.write(f"{report.people} accounts compared, {changed} {text}.")

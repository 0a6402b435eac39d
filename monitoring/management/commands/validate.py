"""`manage.py validate`: test the GPUs of a node or a pool, wait for the results, exit code 1 unless all passed."""

from __future__ import annotations

import sys
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from accounts.errors import Refusal
from clusters.errands import running
from clusters.models import Node
from monitoring.models import Validation
from monitoring.validation import starting, steps, words
from monitoring.validation.starting import Plan
from quotas.models import Pool

PAUSE_SECONDS = 1.0


class Command(BaseCommand):
    help = "Run a small CUDA program on a free GPU of a node, or of each node of a pool."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("node", nargs="?", help="the name of a node")
        parser.add_argument(
            "--cluster", metavar="SLUG", help="where nodes of several clusters have that name"
        )
        parser.add_argument("--pool", metavar="SLUG", help="all nodes of this pool")

    def handle(self, *args: Any, **options: Any) -> None:
        begun, well = [], True
        for plan in wanted(options["node"], options["cluster"], options["pool"]):
            try:
                begun.append(starting.start(None, plan))
            except Refusal as refusal:
                well = False
                self.stdout.write(f"{plan.node}: {refusal.message} {refusal.hint}".strip())
        for row in begun:
            ended(row)
            well = well and row.outcome == Validation.Outcome.PASSED
            self.stdout.write(
                f"{row.node}: {row.get_outcome_display()}. {words.sentence(row)} {words.hint(row)}".strip()
            )
        if not well:
            sys.exit(1)


def wanted(node: str | None, cluster: str | None, pool: str | None) -> list[Plan]:
    if bool(node) == bool(pool):
        raise CommandError(_("Name a node, or a pool by --pool."))
    if pool:
        found = [
            plan
            for row in Pool.objects.filter(slug=pool).select_related("cluster")
            for plan in starting.plans_of(row)
        ]
    else:
        nodes = Node.objects.filter(name=node, **({"cluster__slug": cluster} if cluster else {}))
        found = starting.plans(nodes)
    if not found:
        raise CommandError(_("There is no such node."))
    return found


def ended(row: Validation) -> None:
    """Wait for the end of the test. Look at it here too, so that it goes on without a worker; not in web."""
    while row.ended_at is None:
        if not running.is_for_others():
            steps.look(row.pk)
        row.refresh_from_db()
        if row.ended_at is None:
            time.sleep(PAUSE_SECONDS)

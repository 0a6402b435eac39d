"""`manage.py issue_agent_token CLUSTER`: create a token for the nodes' agents, from the server's command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.errors import Refusal
from clusters.models import Cluster
from monitoring.intake import tokens


class Command(BaseCommand):
    help = "Make a token for the agents of a cluster's nodes. Its secret is the last line, and is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", help="the cluster's slug")
        parser.add_argument("--name", default="issued by an operator", help="shown in the admin's list")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(slug=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster “{options['cluster']}”.")
        try:
            _token, secret = tokens.issue(None, cluster, options["name"])
        except Refusal as refusal:
            raise CommandError(f"{refusal.message} {refusal.hint}") from None
        self.stderr.write(f"For the agents of {cluster.slug}, until it is revoked:")
        self.stdout.write(secret)

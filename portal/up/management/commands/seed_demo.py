"""`manage.py seed_demo`: the demo data, once per database."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clusters.errors import ClusterError
from portal.up import seed
from portal.up.refusal import Refusal


class Command(BaseCommand):
    help = "Make the demo people, tenants, pools and quotas; a database that has them stays as it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--set-passwords", action="store_true", help="set the demo people's password anew"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        password = os.environ["BERTH_DEMO_PASSWORD"]
        try:
            if seed.refresh_cluster():
                if options["set_passwords"]:
                    seed.set_passwords(password)
                return
            cluster = seed.expected_cluster()
            pools = seed.pools_of(cluster)
            if not seed.is_trial_cluster():
                self.stdout.write("\n".join(seed.words_of(cluster, pools)))
            seed.seed(cluster, pools, password)
        except (Refusal, ClusterError) as refusal:
            raise CommandError(str(refusal)) from None

"""`manage.py seed_demo`: the demo data, once per database."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.models import Cluster
from portal.environment import state_dir
from portal.up import agent_token, seed
from portal.up.refusal import Refusal
from portal.up.state import State
from quotas.pools.founding import plans_of


class Command(BaseCommand):
    help = "Make the demo people, tenants, pools and quotas; a database that has them stays as it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--set-passwords", action="store_true", help="set the demo people's password anew"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._seed(os.environ["BERTH_DEMO_PASSWORD"], set_passwords=options["set_passwords"])
        except (Refusal, ClusterError) as refusal:
            raise CommandError(str(refusal)) from None
        if seed.is_trial_cluster():
            cluster = Cluster.objects.get(slug=seed.TRIAL_CLUSTER)
            agent_token.provide(cluster, State(state_dir()).agent_token)

    def _seed(self, password: str, *, set_passwords: bool) -> None:
        if seed.refresh_cluster():
            if set_passwords:
                seed.set_passwords(password)
            return
        cluster = seed.expected_cluster()
        pools = plans_of(api_for(cluster))
        seed.find_networks(cluster)
        if not seed.is_trial_cluster():
            self.stdout.write("\n".join(seed.words_of(cluster, pools)))
        seed.seed(cluster, pools, password)

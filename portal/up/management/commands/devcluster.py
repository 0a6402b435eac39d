"""`manage.py devcluster …`: the trial cluster alone, with the defaults of this state directory."""

import os
from argparse import REMAINDER, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.environment import state_dir
from portal.up.plan import REPOSITORY, cluster_command, trial_cluster_settings
from portal.up.refusal import Refusal
from portal.up.state import State


class Command(BaseCommand):
    help = "Run the trial cluster alone, in the foreground. It refuses where `make up` runs it already."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "words", nargs=REMAINDER, help="as for python -m devcluster; they win over the defaults"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        state = State.make(state_dir())
        try:
            settings = trial_cluster_settings(state, state.read_run_file(), os.environ)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from None
        command = [*cluster_command(state, settings), *options["words"]]
        os.chdir(REPOSITORY)
        os.execv(command[0], command)  # noqa: S606  (no shell is what we want)

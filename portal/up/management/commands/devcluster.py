"""`manage.py devcluster …`: the trial cluster alone, with the defaults of this state directory."""

import os
from argparse import REMAINDER, ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from portal.environment import state_dir
from portal.up.plan import REPOSITORY, cluster_command, trial_cluster_settings
from portal.up.state import State


class Command(BaseCommand):
    help = "Run the trial cluster in the foreground. Words after it replace the defaults of this state directory."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("words", nargs=REMAINDER, help="as for python -m devcluster")

    def handle(self, *args: Any, **options: Any) -> None:
        state = State.make(state_dir())
        settings = trial_cluster_settings(state, state.read_run_file(), os.environ)
        command = [*cluster_command(state, settings), *options["words"]]
        os.chdir(REPOSITORY)
        os.execv(command[0], command)  # noqa: S606  (no shell is what we want)

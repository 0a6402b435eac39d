"""`manage.py devcluster …`: the trial cluster alone, with the defaults of this state directory."""

import os
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.environment import state_dir
from portal.up.plan import cluster_command, trial_cluster_settings
from portal.up.refusal import Refusal
from portal.up.state import State


class Command(BaseCommand):
    help = "Run the trial cluster alone, in the foreground. It refuses where `make up` runs it already."
    requires_system_checks = ()

    words: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass all words after the command's name to the cluster; they win over the defaults."""
        self.words = argv[2:]
        super().run_from_argv(argv[:2])

    def handle(self, *args: Any, **options: Any) -> None:
        state = State.make(state_dir())
        try:
            settings = trial_cluster_settings(state, state.read_run_file(), os.environ)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from None
        command = [*cluster_command(state, settings), *self.words]
        os.execv(command[0], command)  # noqa: S606  (no shell is what we want)

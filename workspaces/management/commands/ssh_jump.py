"""`manage.py ssh_jump`: lets people's ssh through to their workspaces. Start as many as you like."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from vitals.part import PartCommand
from workspaces.ssh_jump.host_key import ready_key
from workspaces.ssh_jump.serving import serve


class Command(PartCommand):
    help = "Let people's ssh through Berth to their workspaces (ssh -J). Any number of processes may run."

    def handle(self, *args: Any, **options: Any) -> None:
        host, _, port = settings.SSH_JUMP_LISTEN.rpartition(":")
        if not port.isdigit():
            raise CommandError(
                f"BERTH_SSH_JUMP_LISTEN is {settings.SSH_JUMP_LISTEN!r}; write it as 0.0.0.0:2222."
            )
        asyncio.run(serve(host.strip("[]"), int(port), ready_key(settings.SSH_JUMP_HOST_KEY_FILE)))

"""`manage.py collect`: keep the logs of pods. Start any number of processes: one leads, the others stand by."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from vitals.part import PartCommand
from workloads.logs.collector import collect


class Command(PartCommand):
    help = "Keep the logs of workspaces and jobs. One process leads, others stand by and take over."

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(_collect())


async def _collect() -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await collect(stopped)

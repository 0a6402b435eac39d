"""`manage.py watch`: follow every cluster. Start any number of processes: one leads, the others stand by."""

from __future__ import annotations

import signal
import threading
from typing import Any

from clusters.watch.fleet import watch
from vitals.part import PartCommand


class Command(PartCommand):
    help = "Follow every cluster and tell what changed. One process leads, others stand by and take over."

    def handle(self, *args: Any, **options: Any) -> None:
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        watch(stopped)

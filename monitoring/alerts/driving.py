"""Occasions of passes over alerts: each tick of the watcher, whose work a worker does.

Each does the other's part while that one is away. While no worker is heard, the process of the tick raises and sends by
itself, in a thread; while no watcher is heard, the process that serves the queue (`stand_in`) enqueues what the tick
would have. So a dead worker and a dead watcher both reach somebody. If both are dead, the missing heartbeat tells.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.db.models.functions import Now

from clusters.watch.ticks import is_due
from monitoring import enqueue
from monitoring.alerts import heartbeat, passes, raising, sending
from vitals.clock import is_near_now
from vitals.models import Process
from vitals.pulse import SILENT_AFTER

log = logging.getLogger(__name__)

EVERY_SECONDS = 5.0
_own_pass = threading.Lock()


def on_tick(**_: Any) -> None:
    if is_heard("worker") and is_heard("queue"):
        passes.want()
        passes.want_sending()
        for route_id in heartbeat.due():
            enqueue.beat_heart(route_id)
        if is_due(3600):
            enqueue.look_at_site()
    elif is_heard("watcher") and _own_pass.acquire(blocking=False):
        threading.Thread(target=_pass_here, name="alerts without a worker", daemon=True).start()


def is_heard(part: str) -> bool:
    return Process.objects.filter(is_near_now("seen_at", Now(), SILENT_AFTER), part=part).exists()


def _pass_here() -> None:
    """Raise and send in this process: there is no worker."""
    try:
        raising.look()
        sending.send_due()
    except Exception:
        log.exception("a pass over alerts failed")
    finally:
        connections.close_all()  # they belong to this thread, which ends
        _own_pass.release()


def stand_in(**_: Any) -> None:
    """Begin to enqueue passes from a thread of this process whenever no watcher is heard."""
    threading.Thread(target=_stand_in, name="alerts without a watcher", daemon=True).start()


def _stand_in() -> None:
    while True:
        time.sleep(EVERY_SECONDS)
        stand_in_once()


def stand_in_once() -> None:
    """Enqueue what is due if no watcher is heard."""
    try:
        close_old_connections()
        if not is_heard("watcher"):
            passes.want()
            passes.want_sending()
    except (DatabaseError, InterfaceError):
        log.warning("no passes over alerts: the database is away")
    finally:
        close_old_connections()

"""The watch as a whole: lead or stand by, and while leading keep one ClusterWatch per Cluster row."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from uuid import UUID

from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from clusters import signals
from clusters.models import Cluster
from clusters.watch.announcements import DATABASE_AWAY, Announcements, send_signal
from clusters.watch.leadership import Leadership
from clusters.watch.watcher import ClusterWatch
from vitals.pulse import Pulse

logger = logging.getLogger(__name__)

STANDBY_SECONDS = 1.0
TICK_SECONDS = 5.0
STOP_SECONDS = 1.5


def watch(stopped: threading.Event) -> None:
    """Lead whenever no other process does, until `stopped` is set."""
    leadership = Leadership()
    try:
        while not stopped.is_set():
            if leadership.take():
                logger.info("this process leads the watch")
                _lead(leadership, stopped)
            else:
                stopped.wait(STANDBY_SECONDS)
    finally:
        leadership.give_up()


def _lead(leadership: Leadership, stopped: threading.Event) -> None:
    fleet = Fleet()
    try:
        while not stopped.is_set() and leadership.still_held():
            fleet.step()
    finally:
        fleet.stop()


class Fleet:
    """Watches of all clusters, and the clock (`tick`) of the rooms above."""

    def __init__(self) -> None:
        self._announcements = Announcements()
        self._watches: dict[UUID, ClusterWatch] = {}
        self._ticked_at = -TICK_SECONDS
        self._pulse = Pulse("watcher")  # beats while leading only: a standby process watches nothing

    def step(self) -> None:
        """Send pending announcements; every five seconds, look for new clusters and tick. Takes about a second."""
        self._pulse.step()
        if time.monotonic() - self._ticked_at >= TICK_SECONDS:
            self._ticked_at = time.monotonic()
            self._follow_rows()
            with suppress(*DATABASE_AWAY):  # the next tick makes up for it
                send_signal(signals.tick)
        self._announcements.send_pending(wait_seconds=STANDBY_SECONDS)

    def stop(self) -> None:
        for watch in self._watches.values():
            watch.stop()
        deadline = time.monotonic() + STOP_SECONDS
        for watch in self._watches.values():
            watch.join(deadline)

    def _follow_rows(self) -> None:
        """Start and stop watches for clusters that were added, changed or removed meanwhile."""
        close_old_connections()
        try:
            rows = {cluster.pk: cluster for cluster in Cluster.objects.all()}
        except (DatabaseError, InterfaceError) as error:
            logger.warning("the database is away: %s", error)
            connection.close()
            return
        for pk, watch in list(self._watches.items()):
            if pk not in rows or _how_reached(rows[pk]) != _how_reached(watch.cluster):
                watch.stop()
                del self._watches[pk]
        for pk, cluster in rows.items():
            if pk not in self._watches:
                self._watches[pk] = ClusterWatch(cluster, self._announcements)
                self._watches[pk].start()
                logger.info("watching %s", cluster.slug)


def _how_reached(cluster: Cluster) -> tuple[str, ...]:
    return cluster.connection, cluster.kubeconfig_path, cluster.context, cluster.kubeconfig

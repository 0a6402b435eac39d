"""Warming beside a cluster's mirror: one thread, which looks every few seconds and when a pod of its own changed."""

from __future__ import annotations

import logging
import threading

from django.db import close_old_connections

from clusters import labels
from clusters.errors import ClusterError
from clusters.mirror import Mirror
from clusters.models import Cluster, Installation
from clusters.transport import Json
from clusters.watch.working import AWAY_SECONDS, Working

from .look import look

log = logging.getLogger(__name__)

EVERY_SECONDS, PAUSE_SECONDS = 10.0, 1.0


class Warmer:
    """Work beside one cluster's mirror. It begins when the mirror is complete."""

    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        self._cluster, self._mirror = cluster, mirror
        self._complete, self._woken = threading.Event(), threading.Event()
        self._work = Working(cluster.slug, [("warming", self._look)])

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        self._work.stopped.set()
        self._woken.set()

    def join(self, timeout: float | None = None) -> None:
        self._work.join(timeout)

    def listed(self) -> None:
        self._complete.set()
        self._woken.set()

    def changed(self, change: str, body: Json) -> None:
        if body["kind"] == "Pod" and labels.WARMS in (body["metadata"].get("labels") or {}):
            self._woken.set()

    def _look(self) -> None:
        if not self._complete.wait(AWAY_SECONDS):
            return
        self._woken.wait(EVERY_SECONDS)
        self._work.stopped.wait(PAUSE_SECONDS)  # a pod changes several times in a second
        self._woken.clear()
        if self._work.stopped.is_set():
            return
        close_old_connections()
        try:
            look(self._cluster, self._mirror, Installation.current_id())
        except ClusterError as error:
            log.info("%s: warming waits for the cluster: %s", self._cluster.slug, error.message)
            self._work.stopped.wait(EVERY_SECONDS)

"""The Secret with a cluster's sign-ons to registries, kept in all namespaces of Berth by a thread of its own."""

from __future__ import annotations

import logging
import time

from django.db import DatabaseError, InterfaceError

from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.mirror import Mirror
from clusters.models import Cluster
from clusters.site.registries import refresh
from clusters.watch.repeating import Repeating
from clusters.watch.watching import Backoff

logger = logging.getLogger(__name__)

LOOK_SECONDS = 3.0  # at the row, and at the namespaces that the watch heard of
EVERY_SECONDS = 60.0  # at the Secrets themselves: a start that lacks its own is given up after five minutes


class Registries(Repeating):
    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        super().__init__(f"{cluster.slug}/registries")
        self._cluster, self._mirror = cluster, mirror
        self._done: tuple[str, frozenset[str]] | None = None
        self._done_at = -EVERY_SECONDS
        self._backoff = Backoff(shortest_seconds=LOOK_SECONDS, longest_seconds=EVERY_SECONDS)

    def pause_after_fault(self) -> float:
        return self._backoff.next_seconds()

    def step(self) -> float:
        """Compare, and write what differs. Return the seconds until the next look."""
        try:
            self._look()
        except (ClusterError, DatabaseError, InterfaceError) as error:
            logger.info("%s: %s", self.name, error)
            return self._backoff.next_seconds()
        self._backoff.reset()
        return LOOK_SECONDS

    def _look(self) -> None:
        row = Cluster.objects.filter(pk=self._cluster.pk).first()
        if row is None:
            return
        now = row.registries, frozenset(body["metadata"]["name"] for body in self._mirror.all("Namespace"))
        # Without sign-ons nothing is kept: looked at once, after they were removed.
        is_due = bool(row.registries) and time.monotonic() - self._done_at >= EVERY_SECONDS
        if is_due or self._done is None or (now != self._done and (row.registries or self._done[0])):
            refresh(row, api_for(row))
            self._done, self._done_at = now, time.monotonic()

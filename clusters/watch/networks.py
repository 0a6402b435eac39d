"""Networks of a cluster, looked for when the watch begins and then every few minutes, in a thread of its own."""

from __future__ import annotations

import logging

from django.db import DatabaseError, InterfaceError

from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.isolation.finding import refresh
from clusters.models import Cluster
from clusters.watch.repeating import Repeating
from clusters.watch.watching import Backoff

logger = logging.getLogger(__name__)

EVERY_SECONDS = 300.0  # a new node's own address is denied after at most so long
AGAIN_SECONDS = 5.0


class Networks(Repeating):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(f"{cluster.slug}/networks")
        self._cluster = cluster
        self._backoff = Backoff(shortest_seconds=AGAIN_SECONDS, longest_seconds=EVERY_SECONDS)

    def pause_after_fault(self) -> float:
        return self._backoff.next_seconds()

    def step(self) -> float:
        """Look once. Return the seconds until the next look."""
        try:
            changed = refresh(self._cluster, api_for(self._cluster))
        except (ClusterError, DatabaseError, InterfaceError) as error:
            logger.info("%s: %s", self.name, error)
            return self._backoff.next_seconds()
        if changed:
            logger.info("%s: %s", self.name, self._cluster.found_networks)
        self._backoff.reset()
        return EVERY_SECONDS

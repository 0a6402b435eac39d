"""The right to Secrets in tenants' namespaces: looked at before anything is made, and then every few minutes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError

from clusters.connections import api_for
from clusters.errors import ClusterError, ClusterRefused
from clusters.isolation.granting import refresh
from clusters.models import Cluster
from clusters.watch.repeating import Repeating
from clusters.watch.watching import Backoff

logger = logging.getLogger(__name__)

EVERY_SECONDS = 300.0
AGAIN_SECONDS = 2.0


class Granting(Repeating):
    def __init__(self, cluster: Cluster, looked: Callable[[], None]) -> None:
        """`looked` is called once: after the first look, or when the cluster refused it."""
        super().__init__(f"{cluster.slug}/granting")
        self._cluster, self._looked, self._is_first = cluster, looked, True
        self._backoff = Backoff(shortest_seconds=AGAIN_SECONDS, longest_seconds=EVERY_SECONDS)

    def pause_after_fault(self) -> float:
        return self._backoff.next_seconds()

    def step(self) -> float:
        """Look once. Return the seconds until the next look."""
        try:
            refresh(self._cluster, api_for(self._cluster))
        except (ClusterError, DatabaseError, InterfaceError) as error:
            logger.info("%s: %s", self.name, error)
            if isinstance(error, ClusterRefused):
                self._done()
            return self._backoff.next_seconds()
        self._done()
        self._backoff.reset()
        return EVERY_SECONDS

    def _done(self) -> None:
        if self._is_first:
            self._is_first = False
            self._looked()

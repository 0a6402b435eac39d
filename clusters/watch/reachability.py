"""Reachability of a cluster: a thread of its own asks every few seconds, and writes its row when the answer changes.

A watch notices too late: on a dead network, or with a server that hangs, it is silent for a minute. Work for a cluster
that is away waits until the cluster is back, so that nothing queues behind requests that run into their timeouts.
"""

from __future__ import annotations

import logging

from django.db import DatabaseError, InterfaceError
from django.utils import timezone

from clusters import signals
from clusters.connections import api_for
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.models import Cluster
from clusters.watch.announcements import Announcements
from clusters.watch.repeating import Repeating

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0
ANSWER_WITHIN_SECONDS = 10.0
# One error is no outage: ask a second time.
SECOND_TRY_AFTER_SECONDS = 1.0
# Limit of the pause that a server may ask for: if it says "in an hour", ask again sooner.
LONGEST_PAUSE_SECONDS = 30.0


class Probe(Repeating):
    def __init__(self, cluster: Cluster, announcements: Announcements) -> None:
        super().__init__(f"{cluster.slug}/reachability")
        self._cluster = cluster
        self._announcements = announcements
        self._reachable: bool | None = None

    def pause_after_fault(self) -> float:
        return PAUSE_SECONDS

    def step(self) -> float:
        """Ask once, write what differs. Return the seconds until the next request."""
        error = self._failure()
        try:
            self._write(error)
        except (DatabaseError, InterfaceError):
            logger.warning("%s: the database is away", self.name)
        return pause_after(error)

    def _failure(self) -> ClusterUnavailable | None:
        first = failure_of(self._cluster)
        if first is None or self._reachable is False or self.stopped.wait(SECOND_TRY_AFTER_SECONDS):
            return first
        return failure_of(self._cluster)

    def _write(self, error: ClusterUnavailable | None) -> None:
        """Update the row and announce it, once when the cluster goes away and once when it comes back."""
        reachable = error is None
        if reachable == self._reachable:
            return
        rows = Cluster.objects.filter(pk=self._cluster.pk, unreachable_since__isnull=not reachable)
        if error is None:
            changed = rows.update(unreachable_since=None, unreachable_reason="")
        else:
            changed = rows.update(unreachable_since=timezone.now(), unreachable_reason=error.message[:1000])
        self._reachable = reachable
        if changed:
            logger.warning("%s: %s", self._cluster.slug, error.message if error else "it answers again")
            self._announcements.add(signals.reachability_changed, self._cluster)


def failure_of(cluster: Cluster) -> ClusterUnavailable | None:
    """Return why the cluster does not answer, or None; a refusal is an answer."""
    try:
        api_for(cluster).ask_for_little(within_seconds=ANSWER_WITHIN_SECONDS)
    except ClusterUnavailable as error:
        return error
    except ClusterRefused:
        pass
    return None


def pause_after(error: ClusterUnavailable | None) -> float:
    asked_for = (error.retry_after_seconds or 0.0) if error else 0.0
    return min(max(PAUSE_SECONDS, asked_for), LONGEST_PAUSE_SECONDS)

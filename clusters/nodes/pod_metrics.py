"""CPU and memory that our pods use, from metrics-server: all pods in one list, every fifteen seconds.

It runs in a thread of its own, so that it never holds up the watch. It keeps nothing: figures that could not be read
or stored are a gap. A cluster without metrics-server is asked less and less often, down to every five minutes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusters import signals
from clusters.api import Api
from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.labels import instance_selector
from clusters.models import Cluster
from clusters.quantities import parse
from clusters.transport import Json
from clusters.watch.announcements import DATABASE_AWAY, send_signal
from clusters.watch.repeating import Repeating
from clusters.watch.watching import Backoff

logger = logging.getLogger(__name__)

# Default interval at which metrics-server itself asks the kubelets.
EVERY_SECONDS = 15.0
SELDOM_SECONDS = 300.0


@dataclass(frozen=True)
class Measured:
    """Usage of one pod, all containers together: CPU as average over a window before `at`, memory at `at`."""

    namespace: str
    pod: str
    at: datetime
    cpu_millicores: int
    memory_bytes: int


class PodMetrics(Repeating):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(f"{cluster.slug}/pod metrics")
        self._cluster = cluster
        self._backoff = Backoff(shortest_seconds=EVERY_SECONDS, longest_seconds=SELDOM_SECONDS)
        self._failure = ""

    def pause_after_fault(self) -> float:
        return self._backoff.next_seconds()

    def step(self) -> float:
        """Ask once and announce the figures. Return the seconds until the next request."""
        try:
            told = read(api_for(self._cluster))
        except ClusterError as error:
            self._note(error.message)
            return self._backoff.next_seconds(at_least_seconds=error.retry_after_seconds or 0.0)
        self._note("")
        self._backoff.reset()
        try:
            send_signal(signals.pods_measured, cluster=self._cluster, measured=told)
        except DATABASE_AWAY as error:
            logger.warning("%s: the database is away: %s", self.name, error)
        return EVERY_SECONDS

    def _note(self, failure: str) -> None:
        """Log once when it fails, and once when it works again."""
        if bool(failure) != bool(self._failure):
            logger.info("%s: %s", self.name, failure or "metrics are told again")
        self._failure = failure


def read(api: Api) -> list[Measured]:
    """Return the usage of our pods. Raises ClusterError; a cluster without metrics-server refuses with 404."""
    listed, _version = api.list_with_version("PodMetrics", labels=instance_selector(), keep=measured)
    return [pod for pod in listed if pod is not None]


def measured(body: Json) -> Measured | None:
    """Return a pod's usage; None if a container's figure is missing or unreadable: a part is not the whole."""
    try:
        usages = [container["usage"] for container in body["containers"]]
        if not usages:
            return None
        return Measured(
            namespace=str(body["metadata"]["namespace"]),
            pod=str(body["metadata"]["name"]),
            at=_moment(body["timestamp"]),
            cpu_millicores=sum(parse("cpu", usage["cpu"]) for usage in usages),
            memory_bytes=sum(parse("memory", usage["memory"]) for usage in usages),
        )
    except (LookupError, TypeError, ValueError):
        return None


def _moment(text: Any) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without its zone: {text}")
    return moment

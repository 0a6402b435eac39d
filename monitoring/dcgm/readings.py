"""Readings of clusters with a Prometheus, every fifteen seconds, in the process that leads the watch.

Each cluster has a thread of its own, and its next reading begins after the last has ended: a slow Prometheus delays
only itself. If a node's own agent reports, Prometheus' data about that node is ignored.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.utils import timezone

from accounts.errors import Refusal
from clusters.models import Cluster, Gpu, Node, PodUsage
from monitoring.agent.schema import Batch
from monitoring.dcgm import xids
from monitoring.dcgm.prometheus import NoAnswer, Prometheus
from monitoring.dcgm.translation import AGENT, METRICS, MINUTES, Known, batches
from monitoring.intake import receive
from monitoring.models import AgentState

logger = logging.getLogger(__name__)

EVERY_SECONDS = 15.0
WITHIN_SECONDS = 12.0
# Age of an agent's last report. Shorter than health's limit for silence: data from Prometheus ends a silence too.
GIVES_WAY_AFTER = timedelta(minutes=1)


class Readings:
    """Readings of one cluster."""

    def __init__(self, cluster_id: UUID) -> None:
        self._cluster_id = cluster_id
        self._thread: threading.Thread | None = None
        self._due = 0.0
        self._failure = ""

    def begin(self) -> bool:
        """Begin a reading if it is due and none is running. Return True if one began."""
        if time.monotonic() < self._due or (self._thread and self._thread.is_alive()):
            return False
        self._due = time.monotonic() + EVERY_SECONDS
        self._thread = threading.Thread(target=self._run, name="prometheus", daemon=True)
        self._thread.start()
        return True

    def _run(self) -> None:
        try:
            if cluster := Cluster.objects.filter(pk=self._cluster_id).exclude(prometheus_url="").first():
                self._read(cluster)
        except Exception:  # the next reading begins all the same
            logger.exception("reading a Prometheus failed")
        finally:
            connection.close()

    def _read(self, cluster: Cluster) -> None:
        failure = ""
        try:
            take(cluster, timezone.now())
        except NoAnswer as why:
            failure = str(why)
        if failure != self._failure:
            logger.warning("%s: %s", cluster.slug, failure or "Prometheus answers again.")
        self._failure = failure


_readings: dict[UUID, Readings] = {}


def on_tick(**_: object) -> None:
    for cluster_id in Cluster.objects.exclude(prometheus_url="").values_list("pk", flat=True):
        _readings.setdefault(cluster_id, Readings(cluster_id)).begin()


def take(cluster: Cluster, now: datetime) -> int:
    """Take one reading. Return the number of nodes with new data. Raise NoAnswer."""
    found = ask(cluster, now, within_seconds=WITHIN_SECONDS)
    states = {state.node: state for state in AgentState.objects.filter(cluster=cluster)}
    return sum(_take(cluster, batch, states.get(batch["node"]), now) for batch in found)


def ask(cluster: Cluster, now: datetime, *, within_seconds: float) -> list[Batch]:
    """Return Prometheus' data as batches, one per node. Change nothing. Raise NoAnswer."""
    url, token_path = cluster.prometheus_url, cluster.prometheus_token_path
    with closing(Prometheus(url, token_path, within_seconds=within_seconds)) as prometheus:
        series = {metric: prometheus.series(metric, minutes=MINUTES) for metric in METRICS}
    return list(batches(series, known_of(cluster), now.timestamp()))


def known_of(cluster: Cluster) -> Known:
    nodes = Node.objects.filter(cluster=cluster).values_list("name", flat=True)
    pods = PodUsage.objects.filter(cluster=cluster).only("namespace", "name", "node", "requests", "devices")
    gpus = Gpu.objects.filter(cluster=cluster).only("uuid", "memory_mib", "sample", "seen_at")
    return Known(
        frozenset(nodes),
        # Kubernetes' own resources have no slash in their names.
        {(pod.namespace, pod.name): pod.node for pod in pods if "/" in "".join(pod.requests)},
        frozenset((pod.namespace, pod.name) for pod in pods if pod.devices),
        {gpu.uuid: gpu.memory_mib for gpu in gpus if gpu.memory_mib is not None},
        {gpu.uuid: _xids(gpu, gpu.seen_at) for gpu in gpus if gpu.seen_at},
    )


def _xids(gpu: Gpu, at: datetime) -> xids.EarlierReading:
    counts = gpu.sample.get("xid_counts")
    by_xid = None if counts is None else {entry["xid"]: entry["count"] for entry in counts}
    return xids.EarlierReading(at.timestamp(), gpu.sample.get("last_xid"), by_xid)


def _take(cluster: Cluster, batch: Batch, state: AgentState | None, now: datetime) -> bool:
    if state and state.agent != AGENT:
        if now - state.seen_at < GIVES_WAY_AFTER:
            return False
    elif state and batch["reports"][0]["sequence"] <= state.sequence:
        return False  # no new scrape since
    try:
        receive.take(cluster.pk, batch, now)
    except Refusal:  # the node has just been removed
        return False
    return True

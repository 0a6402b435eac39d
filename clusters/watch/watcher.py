"""Watch of every cluster: turns changes into rows and signals, with one thread per cluster and kind.

Threads follow (watching.py), rows are written where they differ (nodes/inventory.py), and signals notify the
rooms above. Nothing here must be remembered: after a restart everything is listed anew.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial

from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.utils import timezone

from clusters import measures, signals
from clusters.connections import api_for
from clusters.errors import ClusterError, ClusterRefused
from clusters.labels import INSTANCE, instance_selector
from clusters.models import Cluster, Watcher
from clusters.nodes.inventory import NodeTable, UsageTable, node_values
from clusters.nodes.pod_metrics import PodMetrics
from clusters.transport import Json
from clusters.watch.announcements import Announcements, send_signal
from clusters.watch.changes import Changes
from clusters.watch.networks import Networks
from clusters.watch.reachability import Probe
from clusters.watch.skipping import reading, skip_on_error
from clusters.watch.watching import Changed, Follower, Listed, Lost, Step

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10.0
PAUSE_AFTER_FAULT_SECONDS = 2.0
# Prefix of tenants' namespaces, and the kinds whose events matter there even if they are no warnings.
NAMESPACE_PREFIX = "berth-"
KINDS_WITH_EVENTS = frozenset({"Pod", "PersistentVolumeClaim", "StatefulSet", "Service"})


class OwnObjects:
    """Objects of this installation, forwarded to the rooms above."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def listed(self, step: Listed) -> None:
        for body in step.deleted:
            self.forward(Changed("DELETED", body))

    def changed(self, step: Changed) -> None:
        self.forward(step)

    def forward(self, step: Changed) -> None:
        self._changes.add(step)


class Events(OwnObjects):
    """Events in tenants' namespaces. A deleted event has only expired."""

    def listed(self, step: Listed) -> None:
        """Ignore the list: a reconcile after a list reads the events anew."""

    def changed(self, step: Changed) -> None:
        if step.change != "DELETED" and is_relevant_event(step.body):
            self.forward(step)


class Nodes:
    """Nodes: rows of inventory, and the cluster's version."""

    def __init__(self, cluster: Cluster, announcements: Announcements) -> None:
        self._cluster = cluster
        self._announcements = announcements
        self.table = NodeTable(cluster)

    def listed(self, step: Listed) -> None:
        self._tell(self.table.replace(step.found))
        version = api_for(self._cluster).version()[:40]
        Cluster.objects.filter(pk=self._cluster.pk).exclude(version=version).update(version=version)

    def changed(self, step: Changed) -> None:
        deleted = step.change == "DELETED"
        self._tell(self.table.remove(step.body) if deleted else self.table.put(step.body))
        measures.observe_lag(self._cluster.slug, step)

    def _tell(self, names: set[str]) -> None:
        if names:
            self._announcements.add(signals.capacity_changed, self._cluster)
            send_signal(signals.nodes_changed, cluster=self._cluster, names=names)


class Pods(OwnObjects):
    """Pods: rows of what all of them take; ours are forwarded, too."""

    def __init__(
        self, cluster: Cluster, announcements: Announcements, changes: Changes, installation: str
    ) -> None:
        super().__init__(changes)
        self._cluster = cluster
        self._announcements = announcements
        self._installation = installation
        self.table = UsageTable(cluster, installation)

    def listed(self, step: Listed) -> None:
        self._tell(differs=self.table.replace(step.found))
        super().listed(step)

    def changed(self, step: Changed) -> None:
        deleted = step.change == "DELETED"
        self._tell(differs=self.table.remove(step.body) if deleted else self.table.put(step.body))
        super().changed(step)

    def forward(self, step: Changed) -> None:
        if (step.body["metadata"].get("labels") or {}).get(INSTANCE) == self._installation:
            super().forward(step)

    def _tell(self, *, differs: bool) -> None:
        if differs:
            self._announcements.add(signals.capacity_changed, self._cluster)


def is_relevant_event(event: Json) -> bool:
    """Return True if the event is in a tenant's namespace and about a start or its failure."""
    about = event.get("involvedObject", {})
    in_tenant = str(about.get("namespace", "")).startswith(NAMESPACE_PREFIX)
    return in_tenant and (event.get("type") == "Warning" or about.get("kind") in KINDS_WITH_EVENTS)


class KindThread(threading.Thread):
    """Thread that follows one kind in one cluster until it is stopped; survives every outage on either side."""

    def __init__(self, watch: ClusterWatch, follower: Follower, handler: OwnObjects | Nodes) -> None:
        super().__init__(name=f"{watch.cluster.slug}/{follower.kind}", daemon=True)
        self._watch = watch
        self._handler = handler
        self._beaten_at = 0.0
        self.follower = follower

    def run(self) -> None:
        while not self.follower.stopped.is_set():
            try:
                for step in self.follower.infinite():
                    close_old_connections()
                    self._take(step)
            except (DatabaseError, InterfaceError) as error:
                logger.warning("%s: the database is away, listing anew when it is back: %s", self.name, error)
            except Exception:
                logger.exception("%s: a fault, listing anew", self.name)
            connection.close()
            self.follower.stopped.wait(PAUSE_AFTER_FAULT_SECONDS)

    def _take(self, step: Step) -> None:
        if isinstance(step, Lost):
            logger.warning("%s: %s", self.name, step.error)
            self._watch.lost(self.follower.kind, step.error)
            return
        if isinstance(step, Listed):
            self._handler.listed(step)
            self._watch.listed(self.follower.kind)
        elif isinstance(step, Changed):
            with skip_on_error(self._watch.cluster.slug, self.follower.kind, step.body):
                self._handler.changed(step)
        self._beat()

    def _beat(self) -> None:
        if time.monotonic() - self._beaten_at < HEARTBEAT_SECONDS:
            return
        Watcher.objects.update_or_create(
            cluster=self._watch.cluster, kind=self.follower.kind, defaults={"seen_at": timezone.now()}
        )
        self._beaten_at = time.monotonic()


class ClusterWatch:
    """Threads of one cluster."""

    def __init__(self, cluster: Cluster, announcements: Announcements) -> None:
        self.cluster = cluster
        self._announcements = announcements
        self._lock = threading.Lock()
        self._probe = Probe(cluster, announcements)
        self._pod_metrics = PodMetrics(cluster)
        self._networks = Networks(cluster)
        ours = instance_selector()
        self._changes = Changes(cluster)
        pods = Pods(cluster, announcements, self._changes, ours[INSTANCE])
        read_node, read_pod = (
            reading(cluster.slug, "Node", node_values),
            reading(cluster.slug, "Pod", pods.table.values),
        )
        follow = partial(Follower, partial(api_for, cluster))
        self._threads = [
            KindThread(self, follow("Node", digest=read_node), Nodes(cluster, announcements)),
            KindThread(self, follow("Pod", digest=read_pod), pods),
            KindThread(self, follow("Event", remembers=False), Events(self._changes)),
        ]
        for kind in ("StatefulSet", "Service", "PersistentVolumeClaim"):
            self._threads.append(KindThread(self, follow(kind, ours), OwnObjects(self._changes)))
        self._unlisted = {thread.follower.kind for thread in self._threads}

    def start(self) -> None:
        for thread in (self._probe, self._pod_metrics, self._networks, self._changes, *self._threads):
            thread.start()

    def stop(self) -> None:
        self._probe.stopped.set()
        self._pod_metrics.stopped.set()
        self._networks.stopped.set()
        for thread in self._threads:
            thread.follower.stop()
        self._changes.stop()

    def join(self, deadline: float) -> None:
        """Wait for the threads to end until `deadline`; one in the middle of a request ends with the process."""
        for thread in (*self._threads, self._changes, self._pod_metrics, self._networks):
            thread.join(max(0.0, deadline - time.monotonic()))

    def listed(self, kind: str) -> None:
        """Announce `relisted` once all kinds were listed, and then after every gap of one."""
        if self._done_with(kind):
            self._announcements.add(signals.relisted, self.cluster)

    def lost(self, kind: str, error: ClusterError) -> None:
        """Stop waiting for a kind that the cluster refuses."""
        if isinstance(error, ClusterRefused):
            self._done_with(kind)

    def _done_with(self, kind: str) -> bool:
        with self._lock:
            self._unlisted.discard(kind)
            return not self._unlisted

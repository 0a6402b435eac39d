"""Watch of every cluster: turns changes into rows and signals, with one thread per cluster and kind.

Threads follow (watching.py), rows are written where they differ (nodes/inventory.py), and signals notify the
rooms above. Nothing here must be remembered: after a restart everything is listed anew.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.utils import timezone

from clusters import measures, signals
from clusters.connections import api_for
from clusters.errors import ClusterError, ClusterRefused
from clusters.labels import INSTANCE, instance_selector
from clusters.mirror import Mirror, name_of, says_the_same, trimmed
from clusters.models import Cluster, Watcher
from clusters.nodes.inventory import NodeTable, UsageTable, node_values
from clusters.nodes.parts import PartTable, part_values
from clusters.nodes.pod_metrics import PodMetrics
from clusters.transport import Json, Objects
from clusters.watch import beside
from clusters.watch.announcements import Announcements, send_signal
from clusters.watch.beside import Beside
from clusters.watch.changes import Changes
from clusters.watch.granting import Granting
from clusters.watch.networks import Networks
from clusters.watch.reachability import Probe
from clusters.watch.registries import Registries
from clusters.watch.skipping import Unread, reading, skip_on_error
from clusters.watch.watching import Changed, Follower, Listed, Lost, Step

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10.0
PAUSE_AFTER_FAULT_SECONDS = 2.0
# Prefix of tenants' namespaces, and the kinds whose events matter there even if they are no warnings.
NAMESPACE_PREFIX = "berth-"
OWN_DOMAIN = "berth.dev/"
KINDS_WITH_EVENTS = frozenset({"Pod", "PersistentVolumeClaim", "Service"})


class Mirrored:
    """Objects kept in the mirror: what really changed is passed on."""

    def __init__(self, kind: str, watch: ClusterWatch) -> None:
        self._kind, self._watch = kind, watch
        self.keep = reading(watch.cluster.slug, kind, self.read)

    def read(self, body: Json) -> Any:
        return trimmed(body)

    def listed(self, step: Listed) -> None:
        self.replace([body for body in step.found if not isinstance(body, Unread)], step.version)

    def replace(self, found: Objects, version: str) -> None:
        for body in self._watch.mirror.replace(self._kind, found, version):
            self._watch.tell(Changed("DELETED", body), body)

    def changed(self, step: Changed) -> None:
        body = trimmed(step.body)
        before = self._watch.mirror.heard(self._kind, step.change, body)
        if step.change == "DELETED" or not says_the_same(before, body):
            self._watch.tell(step, body)


class Events:
    """Events in tenants' namespaces. A deleted event has only expired."""

    def __init__(self, watch: ClusterWatch) -> None:
        self._watch = watch
        self.keep = reading(
            watch.cluster.slug, "Event", lambda body: trimmed(body) if is_relevant_event(body) else None
        )

    def listed(self, step: Listed) -> None:
        """Keep what the list says of troubles. Looks that follow a list find it there."""
        for body in step.found:
            if isinstance(body, dict):
                self._watch.mirror.heard_event(body)

    def changed(self, step: Changed) -> None:
        if step.change != "DELETED" and is_relevant_event(step.body):
            is_new = self._watch.mirror.heard_event(trimmed(step.body))
            self._watch.tell(step, step.body if is_new else None)


class Nodes:
    """Nodes: rows of inventory, and the cluster's version. The mirror keeps their conditions and images."""

    def __init__(self, watch: ClusterWatch, announcements: Announcements) -> None:
        self._watch, self._cluster = watch, watch.cluster
        self._announcements = announcements
        self.table = NodeTable(watch.cluster)
        self.keep = reading(
            watch.cluster.slug, "Node", lambda body: (node_values(body), outline_of_node(body))
        )

    def listed(self, step: Listed) -> None:
        outlines = [one[1] for one in step.found if not isinstance(one, Unread)]
        self._watch.mirror.replace("Node", outlines, step.version)
        self._tell(self.table.replace(one if isinstance(one, Unread) else one[0] for one in step.found))
        version = api_for(self._cluster).version()[:40]
        Cluster.objects.filter(pk=self._cluster.pk).exclude(version=version).update(version=version)

    def changed(self, step: Changed) -> None:
        deleted = step.change == "DELETED"
        self._watch.mirror.heard("Node", step.change, outline_of_node(step.body))
        self._tell(self.table.remove(step.body) if deleted else self.table.put(step.body))
        measures.observe_lag(self._cluster.slug, step)

    def _tell(self, names: set[str]) -> None:
        if names:
            self._announcements.add(signals.capacity_changed, self._cluster)
            send_signal(signals.nodes_changed, cluster=self._cluster, names=names)


class Pods(Mirrored):
    """Pods: rows of what all of them take, and of those of the cluster's parts; ours are mirrored, too."""

    def __init__(self, watch: ClusterWatch, announcements: Announcements, installation: str) -> None:
        super().__init__("Pod", watch)
        self._announcements = announcements
        self._installation = installation
        self.table = UsageTable(watch.cluster, installation)
        self.parts = PartTable(watch.cluster)

    def read(self, body: Json) -> Any:
        return self.table.values(body), trimmed(body) if self._is_ours(body) else None, part_values(body)

    def listed(self, step: Listed) -> None:
        found = step.found
        self._tell(differs=self.table.replace(one if isinstance(one, Unread) else one[0] for one in found))
        self.parts.replace(one if isinstance(one, Unread) else one[2] for one in found)
        ours = [one[1] for one in found if not isinstance(one, Unread) and one[1] is not None]
        self.replace(ours, step.version)

    def changed(self, step: Changed) -> None:
        deleted = step.change == "DELETED"
        self._tell(differs=self.table.remove(step.body) if deleted else self.table.put(step.body))
        known = self._watch.mirror.get("Pod", *name_of(step.body))
        if known is not None or self._is_ours(step.body):  # ours, though somebody removed its labels
            super().changed(step)
        if deleted:
            self.parts.remove(step.body)
        else:
            self.parts.put(step.body)

    def _is_ours(self, body: Json) -> bool:
        """Return True also for pods with a finalizer of Berth's: somebody may have removed their label."""
        metadata = body["metadata"]
        if (metadata.get("labels") or {}).get(INSTANCE) == self._installation:
            return True
        return any(str(one).startswith(OWN_DOMAIN) for one in metadata.get("finalizers") or [])

    def _tell(self, *, differs: bool) -> None:
        if differs:
            self._announcements.add(signals.capacity_changed, self._watch.cluster)


def outline_of_node(body: Json) -> Json:
    """Return what looks read of a node: its conditions, and the names of its images, which most nodes share."""
    metadata = {key: body["metadata"].get(key, "") for key in ("name", "resourceVersion")}
    status = body.get("status", {})
    images = [
        {"names": [sys.intern(str(name)) for name in image.get("names") or ()]}
        for image in status.get("images") or ()
    ]
    outline = {"conditions": status.get("conditions") or [], "images": images}
    return {"kind": "Node", "metadata": metadata, "status": outline}


def is_relevant_event(event: Json) -> bool:
    """Return True if the event is in a tenant's namespace and about a start or its failure."""
    about = event.get("involvedObject", {})
    in_tenant = str(about.get("namespace", "")).startswith(NAMESPACE_PREFIX)
    return in_tenant and (event.get("type") == "Warning" or about.get("kind") in KINDS_WITH_EVENTS)


Handler = Mirrored | Events | Nodes


class KindThread(threading.Thread):
    """Thread that follows one kind in one cluster until it is stopped; survives every outage on either side."""

    def __init__(self, watch: ClusterWatch, follower: Follower, handler: Handler) -> None:
        super().__init__(name=f"{watch.cluster.slug}/{follower.kind}", daemon=True)
        self._watch = watch
        self._handler = handler
        self._beaten_at = 0.0
        self.follower = follower

    def run(self) -> None:
        while not self.follower.stopped.is_set():
            try:
                for step in self.follower.infinite():
                    self._take(step)
                    close_old_connections()  # into the pool, for other threads
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
    """Threads of one cluster: they follow its objects into a mirror, beside which rooms above do their work."""

    def __init__(self, cluster: Cluster, announcements: Announcements) -> None:
        self.cluster = cluster
        self.mirror = Mirror(partial(api_for, cluster))
        self._announcements = announcements
        self._lock = threading.Lock()
        self._beside: list[Beside] = [begin(cluster, self.mirror) for begin in beside.made]
        self._changes = Changes(cluster)
        self._own = [Probe(cluster, announcements), PodMetrics(cluster), Networks(cluster)]
        self._own.append(Granting(cluster, partial(self.listed, "RoleBinding")))
        self._own.append(Registries(cluster, self.mirror))
        self._threads = [
            KindThread(self, self._follower(kind, handler.keep, labels), handler)
            for kind, handler, labels in self._handlers()
        ]
        self._unlisted = {"RoleBinding", *(thread.follower.kind for thread in self._threads)}

    def _handlers(self) -> Iterator[tuple[str, Handler, dict[str, str] | None]]:
        ours = instance_selector()
        yield "Node", Nodes(self, self._announcements), None
        yield "Pod", Pods(self, self._announcements, ours[INSTANCE]), None
        yield "Event", Events(self), None
        yield "StorageClass", Mirrored("StorageClass", self), None
        yield "VolumeAttachment", Mirrored("VolumeAttachment", self), None
        yield "Namespace", Mirrored("Namespace", self), None
        for kind in ("Service", "PersistentVolumeClaim", "ConfigMap"):
            yield kind, Mirrored(kind, self), ours

    def _follower(self, kind: str, keep: Callable[[Json], Any], labels: Mapping[str, str] | None) -> Follower:
        return Follower(partial(api_for, self.cluster), kind, labels, keep)

    def tell(self, step: Changed, body: Json | None) -> None:
        """Pass a change on: to the work beside the mirror if it says something new (`body`), and as a signal."""
        if body is not None:
            for work in self._beside:
                work.changed(step.change, body)
        self._changes.add(step)

    def start(self) -> None:
        everything: list[threading.Thread | Beside] = [
            *self._own,
            self._changes,
            *self._threads,
            *self._beside,
        ]
        for thread in everything:
            thread.start()

    def stop(self) -> None:
        for work in self._beside:
            work.stop()
        for own in self._own:
            own.stopped.set()
        for thread in self._threads:
            thread.follower.stop()
        self._changes.stop()

    def join(self, deadline: float) -> None:
        """Wait for the threads to end until `deadline`; one in the middle of a request ends with the process."""
        ending: list[threading.Thread | Beside] = [
            *self._beside,
            *self._threads,
            self._changes,
            *self._own[1:],
        ]
        for thread in ending:
            thread.join(max(0.0, deadline - time.monotonic()))

    def listed(self, kind: str) -> None:
        """Announce `relisted` once all kinds were listed, and then after every gap of one."""
        if self._done_with(kind):
            for work in self._beside:
                work.listed()
            self._announcements.add(signals.relisted, self.cluster)

    def lost(self, kind: str, error: ClusterError) -> None:
        """Stop waiting for a kind that the cluster refuses."""
        if isinstance(error, ClusterRefused):
            self._done_with(kind)

    def _done_with(self, kind: str) -> bool:
        with self._lock:
            self._unlisted.discard(kind)
            return not self._unlisted

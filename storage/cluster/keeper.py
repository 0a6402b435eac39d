"""Looks at the volumes of one cluster, in the process that watches it.

A volume is looked at when its PVC or the pod of its files session changes, when another process marks its row (NOTIFY),
when the clock finds that it has not settled, and all of them after a list. Nothing is remembered: a new process begins
with all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.labels import VOLUME
from clusters.mirror import Mirror
from clusters.models import Cluster, Installation
from clusters.watch.working import AWAY_SECONDS, Working, listening
from storage.enqueue import CHANNEL
from storage.models import FilesSession, Kind, Phase, Snapshot, Volume

from . import attachments
from .look import look

TICK_SECONDS = 5.0
BATCH = 100
THREADS = 4  # a call that hangs holds up the rest of its batch alone
MOVING = (Phase.PENDING, Phase.GROWING, Phase.DELETING)
NAME = "vol-"


class Keeper:
    """Work beside one cluster's mirror. It begins when the mirror is complete."""

    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        self._cluster, self._mirror = cluster, mirror
        self._due: set[UUID] = set()
        self._some = threading.Condition()
        self._noting = threading.Lock()
        self._complete = False
        self._all = False
        self._ticked_at = 0.0
        steps = [("volume marks", self._listen), *[("volumes", self._keep)] * THREADS]
        self._work = Working(cluster.slug, steps)
        self._stopped = self._work.stopped

    # --- called by the watch

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        self._stopped.set()
        with self._some:
            self._some.notify_all()

    def join(self, timeout: float | None = None) -> None:
        self._work.join(timeout)

    def listed(self) -> None:
        with self._some:
            self._complete = self._all = True
            self._some.notify()

    def changed(self, change: str, body: dict[str, Any]) -> None:
        if body["kind"] == attachments.KIND:
            self._add(self._rows().filter(bound_to=attachments.volume_of(body)).values_list("pk", flat=True))
        elif (volume := volume_of(body)) is not None:
            self._add([volume])

    # --- the threads

    def _add(self, volumes: Iterable[UUID]) -> None:
        with self._some:
            self._due.update(volumes)
            self._some.notify()

    def _listen(self) -> None:
        with listening(CHANNEL) as heard:
            self._add(self._rows().filter(dirty_since__isnull=False).values_list("pk", flat=True))
            while not self._stopped.is_set():
                for notice in heard.notifies(timeout=AWAY_SECONDS, stop_after=1):
                    cluster, volume = notice.payload.split()
                    if cluster == str(self._cluster.pk):
                        self._add([UUID(volume)])

    def _keep(self) -> None:
        """Look at what is due, a batch at a time. What could not be done stays marked, and comes with the next tick."""
        taken, is_relisted = self._take()
        if is_relisted:
            self._add(self._rows().values_list("pk", flat=True))
        if time.monotonic() - self._ticked_at >= TICK_SECONDS:
            self._ticked_at = time.monotonic()
            self._add(self._unsettled().values_list("pk", flat=True))
        instance = Installation.current_id() if taken else None
        rows = self._rows().filter(pk__in=taken).select_related("tenant", "cluster", "source__volume__tenant")
        with self._noting:  # what was read of the mirror last is written last
            attachments.note(rows, self._mirror)
        for volume in rows:
            if self._stopped.is_set() or instance is None:
                return
            look(volume, self._mirror, instance)

    def _take(self) -> tuple[list[UUID], bool]:
        with self._some:
            if not self._complete or not (self._due or self._all):
                self._some.wait(AWAY_SECONDS)
            if not self._complete:
                return [], False
            is_relisted, self._all = self._all, False
            share = min(BATCH, max(1, len(self._due) // THREADS))
            taken = sorted(self._due)[:share]
            self._due.difference_update(taken)
            return taken, is_relisted

    def _rows(self) -> QuerySet[Volume]:
        rows = Volume.objects.filter(cluster=self._cluster, deleted_at__isnull=True)
        return rows.exclude(kind=Kind.SCRATCH).order_by()  # Kubernetes makes and ends those with their pods

    def _unsettled(self) -> QuerySet[Volume]:
        is_due = Q(bin_until__lte=timezone.now())
        # One that was made for a new volume alone goes once that has its files.
        is_passing = Q(is_passing=True, phase=Phase.READY)
        moving = Snapshot.objects.filter(is_passing | Q(phase__in=(Phase.PENDING, Phase.DELETING))).values(
            "volume"
        )
        opened = FilesSession.objects.filter(ended_at=None).values("volume")
        is_moving = Q(phase__in=MOVING) | Q(pk__in=moving) | Q(pk__in=opened)
        return self._rows().filter(is_due | Q(dirty_since__isnull=False) | is_moving)


def volume_of(body: dict[str, Any]) -> UUID | None:
    """Return the volume that a PVC, an event about one, or an object of its files session belongs to."""
    about = body.get("involvedObject") or {}
    name = about.get("name", "") if body["kind"] == "Event" else body["metadata"]["name"]
    labelled = (body["metadata"].get("labels") or {}).get(VOLUME, "")
    try:
        return UUID(labelled or (name.removeprefix(NAME) if name.startswith(NAME) else ""))
    except ValueError:
        return None

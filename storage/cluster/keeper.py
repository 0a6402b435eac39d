"""Looks at the volumes of one cluster: when a PVC, an attachment or the pod of a files session changes, and so on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from clusters.labels import VOLUME
from clusters.mirror import Mirror
from clusters.models import Cluster, Installation
from clusters.watch import keeping
from storage.enqueue import CHANNEL
from storage.models import NOT_LOOKED_AT, Adoption, FilesSession, Kind, Phase, Snapshot, Volume

from . import attachments
from .look import look

MOVING = (Phase.PENDING, Phase.GROWING, Phase.DELETING)
NAME = "vol-"


class Keeper(keeping.Keeper):
    name, channel = "volumes", CHANNEL

    def __init__(self, cluster: Cluster, mirror: Mirror) -> None:
        super().__init__(cluster, mirror)
        self._noting = threading.Lock()

    def of(self, change: str, body: dict[str, Any]) -> Iterable[UUID]:
        if body["kind"] == attachments.KIND:
            found = self.rows().filter(bound_to=attachments.volume_of(body))
            return list(found.values_list("pk", flat=True))
        volume = volume_of(body)
        return [] if volume is None else [volume]

    def look(self, taken: Collection[UUID]) -> Iterator[tuple[UUID, bool]]:
        instance = Installation.current_id()
        rows = self.rows().filter(pk__in=taken).select_related("tenant", "cluster", "source__volume__tenant")
        with self._noting:  # what was read of the mirror last is written last
            attachments.note(rows, self.mirror)
        for volume in rows:
            if self.stopped.is_set():
                return
            yield volume.pk, look(volume, self.mirror, instance)

    def rows(self) -> QuerySet[Volume]:
        rows = Volume.objects.filter(cluster=self.cluster, deleted_at__isnull=True)
        return rows.exclude(kind=Kind.SCRATCH).order_by()  # Kubernetes makes and ends those with their pods

    def unsettled(self) -> QuerySet[Volume]:
        is_due = Q(bin_until__lte=timezone.now())
        # One that was made for a new volume alone goes once that has its files.
        is_passing = Q(is_passing=True, phase=Phase.READY)
        moving = Snapshot.objects.filter(is_passing | Q(phase__in=(Phase.PENDING, Phase.DELETING))).values(
            "volume"
        )
        opened = FilesSession.objects.filter(ended_at=None).values("volume")
        is_adopted = NOT_LOOKED_AT | Q(adoption=Adoption.CONFIRMED)
        is_moving = Q(phase__in=MOVING) | Q(pk__in=moving) | Q(pk__in=opened) | is_adopted
        return self.rows().filter(is_due | Q(dirty_since__isnull=False) | is_moving)


def volume_of(body: dict[str, Any]) -> UUID | None:
    """Return the volume that a PVC, an event about one, or an object of its files session belongs to."""
    about = body.get("involvedObject") or {}
    name = about.get("name", "") if body["kind"] == "Event" else body["metadata"]["name"]
    labelled = (body["metadata"].get("labels") or {}).get(VOLUME, "")
    try:
        return UUID(labelled or (name.removeprefix(NAME) if name.startswith(NAME) else ""))
    except ValueError:
        return None

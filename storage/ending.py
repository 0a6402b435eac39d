"""The end of copies: what still needs one, and which versions are ended when there are too many."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.locks import locked

from . import enqueue
from .models import Phase, Snapshot, Volume
from .mounts.leasing import Leases

MOST_VERSIONS = 10  # beyond that a new one ends the oldest that nothing needs


def lock(volume_id: UUID) -> Volume:
    """Lock a volume with those of its versions, in the order in which all are locked. Return it."""
    rows = Volume.objects.filter(Q(pk=volume_id) | Q(source__volume=volume_id, is_version=True))
    return next(row for row in locked(rows.order_by("pk")) if row.pk == volume_id)


def end(row: Snapshot) -> None:
    """Let the keeper delete the copy, and the volume by which runs mount it. Within `lock`."""
    mounted = Volume.objects.filter(source=row, is_version=True, deleted_at=None)
    ended = list(mounted.values_list("pk", flat=True))
    mounted.update(bin_until=timezone.now(), phase=Phase.DELETING)
    Snapshot.objects.filter(pk=row.pk).update(phase=Phase.DELETING, problem="", problem_data={})
    enqueue.look([row.volume_id, *ended])


def end_oldest(volume: Volume) -> None:
    """End the oldest ready versions beyond those that are kept, unless a run mounts them or a volume waits for them.

    Within `lock`.
    """
    ready = volume.snapshots.filter(number__isnull=False, phase=Phase.READY).order_by("-number")
    for row in ready[MOST_VERSIONS:]:
        if not in_use(row):
            end(row)


def in_use(row: Snapshot) -> list[str]:
    """Return the names of the runs that mount the version, and of the volumes that do not have its files yet."""
    versions = Volume.objects.filter(source=row, is_version=True, deleted_at=None)
    runs = {lease.holder_name for lease in Leases().held(list(versions.values_list("pk", flat=True)))}
    return sorted(runs | set(waiting_for(row).values_list("name", flat=True)))


def waiting_for(row: Snapshot) -> QuerySet[Volume]:
    """New volumes that do not have the copy's files yet."""
    made = Volume.objects.filter(source=row, is_version=False, bound_to="", deleted_at=None)
    return made.exclude(Q(bin_until__lte=timezone.now()) | Q(phase=Phase.FAILED))

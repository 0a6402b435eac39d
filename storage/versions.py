"""Published versions as runs mount them: each by one volume of its own, which all of its readers share."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q

from accounts.locks import locked

from . import enqueue
from .models import LATEST, Access, Kind, Mount, Phase, Snapshot, Volume

USABLE = (Phase.PENDING, Phase.READY)


def find(dataset: Volume, version: str) -> Snapshot | None:
    """Return the version of that number, or the newest that is ready for LATEST; None if there is none."""
    versions = dataset.snapshots.filter(number__isnull=False, deleted_at=None)
    if version == LATEST:
        return versions.filter(phase=Phase.READY).order_by("-number").first()
    return versions.filter(number=int(version), phase__in=USABLE).first()


def mounted(version: Snapshot) -> Volume | None:
    """Return the volume by which runs mount the version; None before the first of them."""
    return Volume.objects.filter(source=version, is_version=True, deleted_at=None, bin_until=None).first()


def volume_of(version: Snapshot) -> Volume:
    """Return the volume by which runs mount the version, made if it is the first time. Within the dataset's lock."""
    there = mounted(version)
    if there is not None:
        return there
    dataset = version.volume
    made = Volume.objects.create(
        tenant_id=dataset.tenant_id,
        owner_id=dataset.owner_id,
        cluster_id=dataset.cluster_id,
        name=f"{dataset.name[:50]} v{version.number}",
        kind=Kind.DATASET,
        source=version,
        is_version=True,
        access=Access.READ,
        requested_mib=max(version.size_mib, dataset.size_mib),
        storage_class=dataset.storage_class,
    )
    enqueue.look([made.pk])
    return made


def pin(holder: UUID, version: Snapshot) -> None:
    """Let the holder mount this version wherever it asked for the latest of its dataset. Without effect once it is
    deleted."""
    locked(Volume.objects.filter(pk=version.volume_id)).get()
    if not Snapshot.objects.filter(pk=version.pk, phase=Phase.READY).exists():
        return
    of_dataset = Q(volume=version.volume_id) | Q(volume__source__volume=version.volume_id)
    for mount in Mount.objects.filter(of_dataset, holder=holder, version=LATEST):
        Mount.objects.filter(pk=mount.pk).update(volume=volume_of(version), version=str(version.number))


def renew(holder: UUID) -> None:
    """Let the next run of the holder mount what is the latest version by now."""
    mounts = Mount.objects.filter(holder=holder, version=LATEST).select_related("volume__source__volume")
    for mount in mounts:
        dataset = locked(Volume.objects.filter(pk=mount.volume.rights.pk)).get()
        newest = find(dataset, LATEST)
        if newest is not None and newest.pk != mount.volume.source_id:
            Mount.objects.filter(pk=mount.pk).update(volume=volume_of(newest))


def of(volumes: Iterable[UUID]) -> dict[UUID, list[Snapshot]]:
    """Return the versions by volume, newest first. One query."""
    found: dict[UUID, list[Snapshot]] = {}
    rows = Snapshot.objects.filter(volume__in=list(volumes), number__isnull=False, deleted_at=None)
    for row in rows.select_related("by").order_by("-number"):
        found.setdefault(row.volume_id, []).append(row)
    return found

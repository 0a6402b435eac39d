"""Snapshots of volumes, published versions of datasets, and new volumes that begin as a copy: each writes rows, which
the keeper carries out."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid, NotThere
from accounts.locks import locked
from accounts.trail import audit
from quotas import admission

from . import access, enqueue
from .changes import Wish, create
from .cluster.look import changing
from .ending import end, in_use, lock
from .models import Kind, Phase, Snapshot, Volume
from .mounts.leasing import Leases
from .sources import Source, refuse_binned, refuse_uncopied

MOST_SNAPSHOTS = 20  # of a volume
LONGEST_NOTE = 200


def snapshot(actor: Actor, volume: Volume, note: str = "") -> Snapshot:
    """Keep the volume as it is now, also while a run writes to it."""
    access.require_manage(actor, volume)
    with transaction.atomic():
        with changing(volume) as row:
            refuse_binned(row)
            refuse_uncopied(row)
            if row.snapshots.filter(deleted_at=None, number=None).count() >= MOST_SNAPSHOTS:
                text = _("“%(volume)s” has %(most)s snapshots, the most that are possible.")
                data = {"volume": row.name, "most": MOST_SNAPSHOTS}
                raise Invalid("too_many_snapshots", text % data, _("Delete one that you do not need."))
        made = Snapshot.objects.create(volume=row, by=actor.user, note=note)
        _record(actor, row, "snapshot", note=note)
        enqueue.look([row.pk])
    return made


def publish(actor: Actor, volume: Volume, note: str = "", *, is_after_run: bool = False) -> Snapshot:
    """Freeze the dataset as its next version, while nobody writes to it.

    `is_after_run`: nobody has begun since its last writer ended, so the copy waits until its node has let go of it.
    """
    access.require_manage(actor, volume)
    with transaction.atomic():
        admission.lock(
            volume.cluster_id
        )  # no writer is admitted meanwhile; then the pending version keeps them out
        with changing(volume) as row:
            refuse_binned(row)
            if row.kind != Kind.DATASET:
                text = _("“%(volume)s” is no dataset: only datasets have versions.") % {"volume": row.name}
                raise Invalid("no_dataset", text, _("Take a snapshot of it instead."))
            refuse_uncopied(row)
            _refuse_written(row, but_attached=is_after_run)
            last = row.snapshots.aggregate(last=Max("number"))["last"] or 0
        made = Snapshot.objects.create(volume=row, by=actor.user, note=note, number=last + 1)
        _record(actor, row, "publish", note=note, number=made.number)
        enqueue.look([row.pk])
    return made


def clone(actor: Actor, volume: Volume, name: str) -> Volume:
    """Create a volume of the actor's own that begins with the files of this one."""
    size_mib = max(volume.size_mib, volume.requested_mib)
    begins = Source(volume=volume.pk)
    wish = Wish(name=name, kind=volume.kind, size_mib=size_mib, cluster=volume.cluster.slug, begins=begins)
    return create(actor, volume.tenant.slug, wish)


def get(actor: Actor, volume: Volume, snapshot_id: UUID) -> Snapshot:
    """Return the snapshot or version of a volume that the actor sees, or raise NotThere."""
    found = shown(volume).filter(pk=snapshot_id).first()
    if found is None:
        raise NotThere("not_found", _("There is no such snapshot."), _("Look on the page of its volume."))
    return found


def shown(volume: Volume) -> QuerySet[Snapshot]:
    """Snapshots and versions of the volume that people see, newest first."""
    return volume.snapshots.filter(deleted_at=None, is_passing=False).select_related("by")


def delete(actor: Actor, volume: Volume, taken: Snapshot) -> bool:
    """Delete a snapshot or a version with its data. False: that was asked for before."""
    access.require_manage(actor, volume)
    with transaction.atomic():
        admission.lock(volume.cluster_id)  # no run that mounts the version is admitted meanwhile
        lock(volume.pk)
        row = locked(Snapshot.objects.filter(pk=taken.pk)).get()
        if row.deleted_at or row.phase == Phase.DELETING:
            return False
        _refuse_needed(row)
        end(row)
        _record(actor, volume, "delete_snapshot", number=row.number, note=row.note)
    return True


# --- checks


def _refuse_written(row: Volume, *, but_attached: bool) -> None:
    held = [lease for lease in Leases().held([row.pk]) if not (but_attached and lease.nodes)]
    writers = sorted(lease.holder_name for lease in held if lease.writes)
    if writers:
        raise Conflict(
            "in_use",
            _("%(by)s writes to “%(volume)s”.") % {"volume": row.name, "by": ", ".join(writers)},
            _("Stop what writes to it first, so that the version is whole."),
            fields={"by": writers},
        )


def _refuse_needed(row: Snapshot) -> None:
    if by := in_use(row):
        raise Conflict(
            "in_use",
            _("It is used by %(by)s.") % {"by": ", ".join(by)},
            _("Stop what mounts it; wait until new volumes have its files."),
            fields={"by": by},
        )


def _record(actor: Actor, volume: Volume, verb: str, **data: object) -> None:
    audit.record(actor, f"volume.{verb}", target=volume, tenant=volume.tenant, data=data)

"""Sources of new volumes: the copy of another volume that one begins with."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.models import Tenant
from clusters.models import Cluster

from . import access, enqueue
from .cluster.look import changing
from .models import NO_DRIVER, Kind, Phase, Shared, Snapshot, Volume


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a new volume begins with: a snapshot or a version, another volume as it is now, or nothing."""

    snapshot: UUID | None = None
    volume: UUID | None = None


NOTHING = Source()


def source_of(
    actor: Actor, tenant: Tenant, cluster: Cluster, begins: Source, size_mib: int
) -> Snapshot | None:
    """Return the copy that the new volume begins with, made now if it is to begin as another volume is; None: empty.

    The copy's row is locked until the transaction ends, so that nobody deletes it first.
    """
    if begins.snapshot:
        found = Snapshot.objects.filter(pk=begins.snapshot, deleted_at=None, is_passing=False)
        source = locked(found.select_related("volume__tenant")).first()
        if source is None or source.phase in (Phase.FAILED, Phase.DELETING):
            raise _no_source(_("There is no snapshot %(id)s.") % {"id": begins.snapshot})
        _refuse_foreign(actor, source.volume, tenant, cluster)
        _refuse_smaller(size_mib, source.size_mib or source.volume.size_mib)
        refuse_binned(source.volume)
        return source
    if begins.volume is None:
        return None
    with changing(_volume(actor, begins.volume)) as row:
        _refuse_foreign(actor, row, tenant, cluster)
        _refuse_smaller(size_mib, row.size_mib)
        refuse_binned(row)
        refuse_uncopied(row)
    source = Snapshot.objects.create(volume=row, by=actor.user, is_passing=True)
    enqueue.look([row.pk])
    return source


# --- checks


def refuse_binned(row: Volume) -> None:
    if row.bin_until is not None or row.deleted_at:
        raise Conflict("in_bin", _("This volume is in the bin."), _("Restore it first."))


def refuse_scratch(row: Volume) -> None:
    if row.kind == Kind.SCRATCH:
        text = _("“%(volume)s” is scratch: empty at each start, and gone with each run.") % {
            "volume": row.name
        }
        raise Invalid("is_scratch", text, _("Keep files on a disk or a dataset."))


def refuse_uncopied(row: Volume) -> None:
    """Refuse what has nothing to copy yet, and storage that cannot copy."""
    refuse_scratch(row)
    if not row.bound_to:
        text = _("“%(volume)s” has no files yet.") % {"volume": row.name}
        raise Conflict("not_ready", text, _("Wait until it is ready, or start a workspace that mounts it."))
    if row.driver == NO_DRIVER:
        text = _("The storage of “%(volume)s” makes no copies: it has no CSI driver.") % {"volume": row.name}
        raise Invalid("cannot_copy", text, _("Create a volume on another storage class and copy the files."))


def _refuse_foreign(actor: Actor, volume: Volume, tenant: Tenant, cluster: Cluster) -> None:
    """Refuse a source that the actor may not read, or that lies elsewhere, as one that is not there."""
    seen = access.visible(actor).filter(pk=volume.pk).exists()
    may_read = volume.owner_id == actor.user.pk or volume.shared != Shared.NO
    if not seen or not (may_read or access.may_manage(actor, volume)):
        raise _no_source(_("There is no such source, or it is not shared with you."))
    if volume.tenant_id != tenant.pk or volume.cluster_id != cluster.pk:
        raise _no_source(_("A copy stays in the tenant and the cluster of its source."))


def _refuse_smaller(size_mib: int, there_mib: int) -> None:
    if size_mib < there_mib:
        text = _("The source has %(size)s MiB: a copy needs as much.") % {"size": there_mib}
        raise Invalid("too_small", text, _("Request at least that size."), fields={"size_mib": [text]})


def _volume(actor: Actor, volume_id: UUID) -> Volume:
    found = access.visible(actor).filter(pk=volume_id).first()
    if found is None:
        raise _no_source(_("There is no such source, or it is not shared with you."))
    return found


def _no_source(text: str) -> Invalid:
    return Invalid(
        "no_source", text, _("Name a snapshot or a volume of this tenant."), fields={"from": [text]}
    )

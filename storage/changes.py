"""Create, grow, share, hand on, delete and restore volumes: each writes the row; the keeper carries it out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, tenant_by_slug
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.models import Membership, Role, Tenant, User
from accounts.text import in_gib
from accounts.trail import audit
from clusters.isolation.deciding import refuse_unknown
from clusters.models import Cluster
from quotas import admission
from quotas.allowed import storage

from . import enqueue, notices
from .access import RELATED, require_create, require_manage
from .cluster.look import changing
from .models import LARGEST_MIB, SMALLEST_MIB, Kind, Phase, Shared, Volume
from .mounts.leasing import Leases
from .sources import NOTHING, Source, refuse_binned, source_of

IN_BIN = timedelta(days=7)
MOST_OF_A_PERSON = 200  # in one tenant
NAME = re.compile(r"[^\W_](?:[\w .-]{0,61}[^\W_])?")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A wanted volume. `cluster`: its slug; empty where there is only one."""

    name: str
    kind: str
    size_mib: int
    cluster: str = ""
    shared: str = Shared.NO
    begins: Source = NOTHING


def create(actor: Actor, tenant: str, wish: Wish) -> Volume:
    """Create a volume of the actor's own."""
    place = tenant_by_slug(actor, tenant)
    with transaction.atomic(), unique(wish.name):
        list(locked(User.objects.filter(pk=actor.user.pk)).values_list("pk"))  # one at a time
        require_create(actor, place)
        cluster = _checked(actor, place, wish)
        refuse_unknown(cluster)
        asked = {wish.kind: wish.size_mib}
        storage.refuse_beyond(place, actor.user, asked, field="size_mib", hint=hint_of_limit())
        source = source_of(actor, place, cluster, wish.begins, wish.size_mib)
        if wish.kind == Kind.SCRATCH and (source is not None or wish.shared != Shared.NO):
            raise _kept_by_nobody()
        if wish.kind == Kind.HOME and (source is None or source.volume.kind != Kind.HOME):
            raise _no_home()
        # There is nothing to make for a scratch: each run gets an empty one of its own.
        is_there = wish.kind == Kind.SCRATCH
        there = {"size_mib": wish.size_mib, "phase": Phase.READY} if is_there else {}
        volume = Volume.objects.create(
            tenant=place,
            owner=actor.user,
            cluster=cluster,
            name=wish.name,
            kind=wish.kind,
            shared=wish.shared,
            requested_mib=wish.size_mib,
            storage_class=source.volume.storage_class if source else class_for(wish.kind, cluster),
            source=source,
            **there,
        )
        data = {"source": source.volume.name} if source else {}
        _record(actor, volume, "create", kind=volume.kind, size_mib=volume.requested_mib, **data)
        enqueue.look([volume.pk])
    return volume


def class_for(kind: str, cluster: Cluster) -> str:
    """Return the storage class for a kind of volume; empty: the cluster's default."""
    if kind == Kind.DATASET and cluster.dataset_class:
        return cluster.dataset_class
    return cluster.disk_class if kind in (Kind.DISK, Kind.SCRATCH) else cluster.home_class


def change(actor: Actor, volume: Volume, wanted: Mapping[str, Any]) -> bool:
    """Change size, name, sharing, or which is the owner's home: all of it or nothing.

    Return True if the cluster has something to do.
    """
    require_manage(actor, volume)
    with transaction.atomic(), unique(wanted.get("name", volume.name)):
        storage.lock(volume.tenant)
        with changing(volume) as row:
            refuse_binned(row)
            if faults := faults_of_name(wanted.get("name", row.name)):
                raise invalid(faults)
            if row.kind == Kind.SCRATCH and wanted.get("shared", Shared.NO) != Shared.NO:
                raise _kept_by_nobody()
            grows = "size_mib" in wanted and grow(row, wanted["size_mib"])
            for name in {"name", "shared"} & wanted.keys():
                setattr(row, name, wanted[name])
            if wanted.get("main"):
                _make_main(row)
        _record(actor, row, "change", **wanted)
        if grows:
            enqueue.look([row.pk])
    return grows


def grow(row: Volume, size_mib: int) -> bool:
    """Request another size of a locked volume. Less is possible only where a growth failed, and above what is there."""
    if size_mib == row.requested_mib:
        return False
    if not SMALLEST_MIB <= size_mib <= LARGEST_MIB:
        raise invalid({"size_mib": [_("Use 64 MiB or more.")]})
    if row.kind == Kind.SCRATCH:
        return _resize_scratch(row, size_mib)
    refuse_unconfirmed(row)
    gives_up = row.problem == "growth_failed" and size_mib > row.size_mib
    if size_mib < row.requested_mib and not gives_up:
        text = _("A volume cannot be made smaller: it has %(size)s.") % {"size": in_gib(row.requested_mib)}
        hint = _("Create a smaller volume and copy the files.")
        raise Invalid("cannot_shrink", text, hint, fields={"size_mib": [text]})
    if not row.can_grow and size_mib > row.requested_mib:
        text = _("Volumes of the storage class %(name)s cannot grow.") % {"name": row.storage_class}
        hint = _("Create a larger volume and copy the files, or ask your admin to allow volume expansion.")
        raise Invalid("cannot_grow", text, hint, fields={"size_mib": [text]})
    if size_mib > row.requested_mib:
        asked = {row.kind: size_mib - row.requested_mib}
        storage.refuse_beyond(row.tenant, row.owner, asked, field="size_mib", hint=hint_of_limit())
    row.requested_mib, row.problem, row.problem_data = size_mib, "", {}
    if row.size_mib:
        row.phase = Phase.GROWING
    return True


def _resize_scratch(row: Volume, size_mib: int) -> bool:
    """Give the next run another size. Nothing of the present one's is touched."""
    if size_mib > row.requested_mib:
        asked = {row.kind: size_mib - row.requested_mib}
        storage.refuse_beyond(row.tenant, row.owner, asked, field="size_mib", hint=hint_of_limit())
    row.size_mib = row.requested_mib = size_mib
    return False


def _make_main(row: Volume) -> None:
    """Let the owner's new workspaces mount this home instead of the present one."""
    if row.kind != Kind.HOME:
        text = _("“%(volume)s” is no home.") % {"volume": row.name}
        raise Invalid("no_home", text, _("Name one of your homes."), fields={"main": [text]})
    refuse_unconfirmed(row)
    homes = Volume.objects.filter(tenant=row.tenant_id, owner=row.owner_id, cluster=row.cluster_id)
    homes.filter(is_main=True).exclude(pk=row.pk).update(is_main=False)
    row.is_main = True


def refuse_unconfirmed(row: Volume) -> None:
    """Refuse what would write to an adopted volume before its owner has confirmed it."""
    if row.is_read_only:
        text = _("“%(volume)s” is adopted, and read-only until its owner confirms it.") % {"volume": row.name}
        raise Conflict("not_confirmed", text, _("Its owner can confirm it on its page."))


def delete(actor: Actor, volume: Volume, *, now: bool = False) -> bool:
    """Put the volume into the bin for 7 days; `now`: delete it with its data, from the bin too."""
    require_manage(actor, volume)
    with transaction.atomic():
        admission.lock(volume.cluster_id)  # no run that mounts it is admitted meanwhile
        with changing(volume) as row:
            if row.is_due or (row.bin_until and not now):
                return False
            _refuse_in_use(row)
            if row.kind == Kind.SCRATCH:
                now, row.phase, row.deleted_at = True, Phase.DELETED, timezone.now()
            row.bin_until = timezone.now() + (timedelta() if now else IN_BIN)
            if row.deleted_at is None:
                row.phase = Phase.DELETING if now else Phase.IN_BIN
        _record(actor, row, "delete_now" if now else "delete")
        enqueue.look([row.pk])
    return True


def _refuse_in_use(row: Volume) -> None:
    versions = Volume.objects.filter(source__volume=row, is_version=True, deleted_at=None)
    held = Leases().held([row.pk, *versions.values_list("pk", flat=True)])
    if not held:
        return
    by = ", ".join(sorted(lease.holder_name for lease in held))
    raise Conflict(
        "in_use",
        _("“%(volume)s” is mounted by %(by)s.") % {"volume": row.name, "by": by},
        _("Stop what uses it first."),
        fields={"by": [lease.holder_name for lease in held]},
    )


def restore(actor: Actor, volume: Volume) -> bool:
    """Take the volume out of the bin. False: it is in none."""
    require_manage(actor, volume)
    with transaction.atomic(), unique(volume.name):
        with changing(volume) as row:
            if row.bin_until is None:
                return False
            if row.is_due:
                raise Conflict(
                    "being_deleted",
                    _("This volume is being deleted with its data."),
                    _("It cannot be restored. Ask your admin for a backup."),
                )
            row.bin_until, row.phase = None, Phase.READY if row.size_mib else Phase.PENDING
            row.is_main = row.is_main and not _has_another_home(row)
        _record(actor, row, "restore")
        enqueue.look([row.pk])
    return True


def transfer(actor: Actor, volume: Volume, username: str) -> bool:
    """Hand the volume to another member of its tenant. False: it is theirs already."""
    require_manage(actor, volume)
    with transaction.atomic(), unique(volume.name):
        to = Membership.objects.filter(tenant=volume.tenant, user__username=username).first()
        if to is None or to.role == Role.VIEWER:
            text = _("“%(username)s” can have no volumes in this tenant.") % {"username": username}
            hint = _("Name a member or an owner of the tenant.")
            raise Invalid("not_a_member", text, hint, fields={"username": [text]})
        storage.lock(volume.tenant)
        with changing(volume) as row:
            refuse_binned(row)
            if row.owner_id == to.user_id:
                return False
            _refuse_too_much(row, to.user)
            before, row.owner = row.owner.get_username(), to.user
            row.is_main, row.made_for = False, None  # it belongs to no workspace of the one who had it
            Volume.objects.filter(source__volume=row, is_version=True).update(owner=to.user)
        notices.received(actor, row, "handed_over")
        _record(actor, row, "transfer", to=username, before=before)
    return True


def _refuse_too_much(row: Volume, to: User) -> None:
    mib = max(row.requested_mib, row.size_mib)
    hint = _("Choose somebody else, let them delete what they do not need, or ask your admin for more quota.")
    storage.refuse_another_owner(row.tenant, to, mib, field="username", hint=hint)


def _has_another_home(row: Volume) -> bool:
    homes = Volume.objects.filter(
        tenant=row.tenant_id, owner=row.owner_id, cluster=row.cluster_id, is_main=True
    )
    return homes.filter(deleted_at=None, bin_until=None).exists()


# --- checks


def _checked(actor: Actor, tenant: Tenant, wish: Wish) -> Cluster:
    """Return the cluster. Raise a refusal with all faulty fields at once."""
    faults = faults_of_name(wish.name)
    if not SMALLEST_MIB <= wish.size_mib <= LARGEST_MIB:
        faults["size_mib"] = [_("Use 64 MiB or more.")]
    cluster = cluster_named(wish.cluster, faults)
    if faults or cluster is None:
        raise invalid(faults)
    refuse_too_many(actor.user, tenant)
    return cluster


def cluster_named(slug: str, faults: dict[str, Sequence[str]]) -> Cluster | None:
    """Return the cluster, the only one for an empty name. None: the faults say why not."""
    clusters = list(Cluster.objects.filter(slug=slug) if slug else Cluster.objects.all()[:2])
    if len(clusters) == 1:
        return clusters[0]
    missing = _("There is no cluster “%(slug)s”.") % {"slug": slug}
    faults["cluster"] = [missing if slug else _("Name the cluster: there are several.")]
    return None


def _kept_by_nobody() -> Invalid:
    text = _("Scratch is empty at each start and gone with each run: there is nothing to share or to copy.")
    return Invalid(
        "is_scratch", text, _("Create a disk or a dataset for files that stay."), fields={"kind": [text]}
    )


def _no_home() -> Invalid:
    text = _("A home makes itself at your first launch.")
    hint = _("Create a disk or a dataset, or a home from another home.")
    return Invalid("made_by_itself", text, hint, fields={"kind": [text]})


def refuse_too_many(owner: User, tenant: Tenant) -> None:
    if Volume.objects.filter(tenant=tenant, owner=owner, deleted_at=None).count() >= MOST_OF_A_PERSON:
        text = _("You have %(most)s volumes in this tenant, the most that are possible.")
        raise Invalid(
            "too_many_volumes", text % {"most": MOST_OF_A_PERSON}, _("Delete one that you do not need.")
        )


def faults_of_name(name: str) -> dict[str, Sequence[str]]:
    if NAME.fullmatch(name):
        return {}
    return {
        "name": [
            _("Use 1 to 63 letters, digits, spaces, dots, dashes; begin and end with a letter or digit.")
        ]
    }


def invalid(faults: Mapping[str, Sequence[str]]) -> Invalid:
    return Invalid("invalid", _("Some fields are not valid."), _("Correct the named fields."), fields=faults)


@contextmanager
def unique(name: str) -> Iterator[None]:
    """Refuse a name that the owner has already in the tenant. It must be inside the transaction."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if "one_volume_of_a_name" not in str(error):
            raise
        raise Conflict(
            "name_taken",
            _("Its owner already has a volume “%(name)s” in this tenant.") % {"name": name},
            _("Choose another name, or rename the other one."),
            fields={"name": [_("Already taken.")]},
        ) from None


def hint_of_limit() -> str:
    return _("Request less, delete what nobody needs (the bin counts too), or ask your admin for more quota.")


def _record(actor: Actor, volume: Volume, verb: str, **data: Any) -> None:
    audit.record(actor, f"volume.{verb}", target=volume, tenant=volume.tenant, data=data)


def fresh(volume: Volume) -> Volume:
    """Return the row as it is now."""
    return Volume.objects.select_related(*RELATED).get(pk=volume.pk)

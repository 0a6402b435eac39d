"""Home and disk of a workspace: the volumes that its launch makes, or finds, and mounts.

A person has one home in each tenant and cluster, which all of their workspaces there mount. A disk is made for one
workspace, and may be deleted with it. A workspace that was cloned with its files has a copy of both. One that was
launched for a class has a home of its own: who launched it chose its programs, and may not open the person's files.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from accounts.access import Actor
from accounts.locks import locked
from accounts.models import Tenant, User
from clusters.models import Cluster
from quotas.allowed import storage
from storage import enqueue, versions
from storage.changes import class_for, grow, hint_of_limit, refuse_too_many
from storage.cluster.look import changing
from storage.models import DISK_PATH, HOME_PATH, Access, Kind, Mount, Phase, Volume
from storage.sources import Source, refuse_binned, source_of

from .mounting import mounts_of, own

LONGEST_NAME = 63


def main_home(owner: User, tenant: Tenant, cluster: Cluster) -> Volume | None:
    """Return the home that new workspaces of this person mount; None before the first."""
    homes = Volume.objects.filter(tenant=tenant, owner=owner, cluster=cluster, is_main=True)
    return homes.filter(deleted_at__isnull=True, bin_until__isnull=True).first()


def mount_home(owner: User, tenant: Tenant, cluster: Cluster, holder: UUID, home: Volume | None) -> None:
    """Let the holder mount its person's home; None: a new one is made. Within the person's own lock."""
    home = home or Volume.objects.create(
        tenant=tenant,
        owner=owner,
        cluster=cluster,
        name=free_name(owner, tenant, "home"),
        kind=Kind.HOME,
        is_main=True,
        requested_mib=cluster.home_mib,
        storage_class=class_for(Kind.HOME, cluster),
        # Known before the PVC is made, so that a person's first two workspaces need not wait for each other.
        access=Access.MANY if cluster.home_class in cluster.shared_classes else "",
    )
    Mount.objects.create(volume=home, holder=holder, path=HOME_PATH, read_only=False)


def add_home(owner: User, tenant: Tenant, cluster: Cluster, holder: UUID, holder_name: str) -> None:
    """Make a home for the holder alone, which mounts it instead of its person's. Within the person's own lock."""
    refuse_too_many(owner, tenant)
    home = Volume.objects.create(
        tenant=tenant,
        owner=owner,
        cluster=cluster,
        name=free_name(owner, tenant, f"{holder_name[: LONGEST_NAME - 9]} home"),
        kind=Kind.HOME,
        made_for=holder,
        requested_mib=cluster.home_mib,
        storage_class=class_for(Kind.HOME, cluster),
    )
    Mount.objects.create(volume=home, holder=holder, path=HOME_PATH, read_only=False)


def with_own(holders: Iterable[UUID]) -> set[UUID]:
    """Return those of the holders whose home was made for them alone."""
    rows = Mount.objects.filter(holder__in=holders, path=HOME_PATH, volume__made_for=F("holder"))
    return set(rows.values_list("holder", flat=True))


def add_disk(
    owner: User, tenant: Tenant, cluster: Cluster, holder: UUID, holder_name: str, size_mib: int
) -> None:
    """Make a disk for the holder, which mounts it at /disk."""
    refuse_too_many(owner, tenant)
    disk = Volume.objects.create(
        tenant=tenant,
        owner=owner,
        cluster=cluster,
        name=free_name(owner, tenant, f"{holder_name[: LONGEST_NAME - 9]} disk"),
        kind=Kind.DISK,
        made_for=holder,
        requested_mib=size_mib,
        storage_class=class_for(Kind.DISK, cluster),
    )
    Mount.objects.create(volume=disk, holder=holder, path=DISK_PATH, read_only=False)


def ties(holder: UUID) -> Volume | None:
    """Return the holder's own disk if that alone keeps its runs from nodes: the rest could be mounted elsewhere."""
    tied = [mount for mount in mounts_of([holder]).get(holder, ()) if mount.volume.affinity]
    return tied[0].volume if [mount.path for mount in tied] == [DISK_PATH] else None


def leave_disk(holder: UUID, holder_name: str) -> Volume:
    """Let the holder mount a new, empty disk. Return the one that it leaves, which stays with its owner."""
    [mount] = [mount for mount in _own_of(holder) if mount.path == DISK_PATH]
    with changing(mount.volume) as row:
        row.made_for = None  # it is not deleted with the holder
    Mount.objects.filter(pk=mount.pk).delete()
    add_disk(row.owner, row.tenant, row.cluster, holder, holder_name, row.requested_mib)
    return row


def copy_own(actor: Actor, holder: UUID, holder_name: str, of: UUID) -> None:
    """Make copies of another holder's home and own disk as they are now, and let the holder mount these instead.

    Raise a Refusal where there is nothing to copy yet, or storage that cannot copy.
    """
    for mount in _own_of(of):
        refuse_too_many(actor.user, mount.volume.tenant)
        is_home, there = mount.path == HOME_PATH, mount.volume
        size_mib = _size_mib(there)
        stem = f"{holder_name[: LONGEST_NAME - 9]} {'home' if is_home else 'disk'}"
        source = source_of(actor, there.tenant, there.cluster, Source(volume=there.pk), size_mib)
        copy = Volume.objects.create(
            tenant=there.tenant,
            owner=actor.user,
            cluster=there.cluster,
            name=free_name(actor.user, there.tenant, stem),
            kind=there.kind,
            made_for=None if is_home else holder,
            requested_mib=size_mib,
            storage_class=there.storage_class,
            source=source,
        )
        Mount.objects.create(volume=copy, holder=holder, path=mount.path, read_only=False)
        enqueue.look([copy.pk])


def sizes_of_own(holder: UUID) -> dict[str, int]:
    """Return the sizes in MiB of the holder's home and own disk, by kind."""
    return {mount.volume.kind: _size_mib(mount.volume) for mount in _own_of(holder)}


def _own_of(holder: UUID) -> list[Mount]:
    return own(mounts_of([holder]).get(holder, ()))


def _size_mib(volume: Volume) -> int:
    return max(volume.size_mib, volume.requested_mib)


def grow_disk(holder: UUID, size_mib: int) -> bool:
    """Request another size of the holder's own disk. Return False if it has that. Raise a Refusal as `change` does."""
    [disk] = [mount.volume for mount in _own_of(holder) if mount.path == DISK_PATH]
    with changing(disk) as row:
        refuse_binned(row)
        grows = grow(row, size_mib)
    if grows:
        enqueue.look([disk.pk])
    return grows


def disk_mib(mounts: Iterable[Mount]) -> int:
    """Return the size of the own disk among a holder's mounts; 0 if there is none."""
    return next((mount.volume.requested_mib for mount in mounts if mount.path == DISK_PATH), 0)


def free_name(owner: User, tenant: Tenant, stem: str) -> str:
    """Return the first of `home`, `home-2`, `home-3` … that none of the person's volumes in the tenant has."""
    theirs = Volume.objects.filter(owner=owner, tenant=tenant, deleted_at=None, bin_until=None)
    taken = set(theirs.filter(name__startswith=stem).values_list("name", flat=True))
    return next(name for name in chain([stem], (f"{stem}-{n}" for n in count(2))) if name not in taken)


def made_for(holder: UUID) -> list[Volume]:
    """Return the volumes that may be deleted with the holder, for nobody else mounts them."""
    others = Mount.objects.exclude(holder=holder).values("volume")
    rows = Volume.objects.filter(made_for=holder, deleted_at__isnull=True, bin_until__isnull=True)
    return list(rows.exclude(pk__in=others))


def let_go(holder: UUID, *, with_data: bool) -> None:
    """Delete the mounts of a holder that is gone; `with_data`: also the volumes that were made for it alone."""
    going = {volume.pk for volume in made_for(holder)} if with_data else set()
    Mount.objects.filter(holder=holder).delete()
    rows = locked(Volume.objects.filter(made_for=holder).order_by("pk"))
    if not list(rows.values_list("pk")):
        return
    Volume.objects.filter(pk__in=going).update(bin_until=timezone.now(), phase=Phase.DELETING)
    Volume.objects.filter(made_for=holder).exclude(pk__in=going).update(made_for=None)
    enqueue.look(going)


def renew(owner: User, tenant: Tenant, cluster: Cluster, holder: UUID) -> None:
    """Renew what the holder's next run mounts: the latest versions, nothing deleted for good, and a home."""
    versions.renew(holder)
    Mount.objects.filter(holder=holder, volume__deleted_at__isnull=False).delete()
    if not Mount.objects.filter(holder=holder, path=HOME_PATH).exists():
        home = main_home(owner, tenant, cluster)
        if home is None:
            storage.refuse_beyond(tenant, owner, {Kind.HOME: cluster.home_mib}, hint=hint_of_limit())
        mount_home(owner, tenant, cluster, holder, home)

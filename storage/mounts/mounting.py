"""Mounts: which volumes the runs of a holder mount, and where. Workspaces call this when they are launched."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Invalid
from accounts.locks import locked
from accounts.models import Tenant
from clusters.models import Cluster
from quotas import passes
from storage import access, notices, versions
from storage.models import DISK_PATH, HOME_PATH, LATEST, Kind, Mount, Mounts, Phase, Shared, Turn, Volume

from .leasing import running

MOST = 20
LONGEST_PATH = 240
PATH = re.compile(r"(?:/[\w.-]+)+", re.ASCII)
VERSION = re.compile(rf"{LATEST}|[1-9][0-9]{{0,8}}", re.ASCII)
# Where the system and Berth have their files, in every image.
ROOTS = (
    "bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var", "opt",
    "berth", "disk",
)  # fmt: skip
RESERVED = tuple(f"/{name}" for name in ROOTS)


@dataclass(frozen=True, kw_only=True)
class MountWish:
    volume: UUID
    path: str
    read_only: bool = True
    version: str = ""  # a number, or LATEST; empty: the volume itself
    # Somebody publishes that version before the holder starts, who then pins it: there may be none yet.
    is_promised: bool = False

    @property
    def key(self) -> str:
        """Name of this choice in a form."""
        how = "v" if self.version == LATEST else self.version
        return f"{self.volume}:{how or ('r' if self.read_only else 'w')}"


def mount(
    actor: Actor,
    tenant: Tenant,
    cluster: Cluster,
    holder: UUID,
    wishes: Sequence[MountWish],
    own_paths: Collection[str],
) -> None:
    """Let each run of the new holder mount these. Raise Invalid for what cannot be mounted, or not there."""
    if not wishes:
        return
    volumes = check(actor, tenant, cluster, wishes, own_paths, _own_volumes(holder))
    Mount.objects.bulk_create(_row(holder, volumes[wish.volume], wish) for wish in wishes)


def change(
    actor: Actor,
    tenant: Tenant,
    cluster: Cluster,
    holder: UUID,
    wishes: Sequence[MountWish],
    own_paths: Collection[str],
) -> bool:
    """Let the holder's next run mount these, beside its home and own disk. Return False if that is so already.

    A run that is admitted goes on with what it mounts, which it holds until the end of its pods is proven; so the
    caller holds the cluster's admission lock. Raise Invalid as `mount` does.
    """
    volumes = check(actor, tenant, cluster, wishes, own_paths, _own_volumes(holder))
    wanted = {(wish.volume, wish.path, wish.read_only, wish.version): wish for wish in wishes}
    mounts = chosen(_rows([holder]))
    if wanted.keys() == {_key(one) for one in mounts if one.turn != Turn.GOING}:
        return False
    there = {_key(one): one.pk for one in mounts if one.turn != Turn.COMING}
    rows = Mount.objects.filter(holder=holder)
    rows.filter(turn=Turn.COMING).delete()
    stays = [pk for key, pk in there.items() if key in wanted]
    rows.filter(pk__in=stays).update(turn="")
    rows.filter(pk__in=set(there.values()) - set(stays)).update(turn=Turn.GOING)
    new = [wish for key, wish in wanted.items() if key not in there]
    Mount.objects.bulk_create(_row(holder, volumes[wish.volume], wish, Turn.COMING) for wish in new)
    if not running([holder]).exists():
        take_up(holder)
        passes.want_for_cluster(cluster.pk)  # it may start now, and so may those behind it
    return True


def take_up(holder: UUID) -> None:
    """Put in force what was changed during the last run. The end of that run is proven."""
    rows = Mount.objects.filter(holder=holder)
    gone, _rows_by_kind = rows.filter(turn=Turn.GOING).delete()
    rows.filter(turn=Turn.COMING, volume__deleted_at__isnull=False).delete()
    if rows.filter(turn=Turn.COMING).update(turn="") or gone:
        versions.renew(holder)


def is_changing(holder: UUID) -> bool:
    """Return True if the holder's next run mounts something else than the present one."""
    return Mount.objects.filter(holder=holder).exclude(turn="").exists()


def _key(one: Mount) -> tuple[UUID, str, bool, str]:
    return one.volume.rights.pk, one.path, one.read_only, one.version


def _own_volumes(holder: UUID) -> set[UUID]:
    return {one.volume_id for one in own(_rows([holder]))}


def mountable(
    actor: Actor, tenant: Tenant, cluster: Cluster, mounts: Iterable[Mount]
) -> tuple[list[MountWish], list[str]]:
    """Return what of these the actor may mount too, and the names of the rest."""
    wishes = wished(mounts)
    rows = access.visible(actor).filter(pk__in=[wish.volume for _name, wish in wishes], tenant=tenant)
    volumes = {row.pk: row for row in rows}
    found, left_out = [], []
    for name, wish in wishes:
        if wish.volume in volumes and not _fault_of(actor, volumes[wish.volume], cluster, wish):
            found.append(wish)
        else:
            left_out.append(name)
    return found, left_out


def check(
    actor: Actor,
    tenant: Tenant,
    cluster: Cluster,
    wishes: Sequence[MountWish],
    own_paths: Collection[str],
    own_volumes: Collection[UUID],
    *,
    lock: bool = True,
) -> dict[UUID, Volume]:
    """Return the wanted volumes by their ids, locked until the transaction ends. Raise Invalid with all faults."""
    if not wishes:
        return {}
    rows = access.visible(actor).filter(pk__in=[wish.volume for wish in wishes])
    volumes = {row.pk: row for row in (locked(rows) if lock else rows)}
    faults = _faults(wishes, own_paths)
    for wish in wishes:
        volume = volumes.get(wish.volume)
        if volume is None or volume.tenant_id != tenant.pk:
            faults.append(_("There is no volume %(id)s in this tenant.") % {"id": wish.volume})
        elif volume.pk in own_volumes:
            faults.append(_("“%(name)s” is its home or its own disk.") % {"name": volume.name})
        elif fault := _fault_of(actor, volume, cluster, wish):
            faults.append(fault)
    if faults:
        raise Invalid(
            "invalid",
            _("Some volumes cannot be mounted."),
            _("See your volumes under Storage."),
            fields={"volumes": faults},
        )
    return volumes


def _row(holder: UUID, volume: Volume, wish: MountWish, turn: str = "") -> Mount:
    return Mount(
        volume=_mounted(volume, wish),
        holder=holder,
        path=wish.path,
        read_only=wish.read_only,
        version=wish.version,
        turn=turn,
    )


def _mounted(volume: Volume, wish: MountWish) -> Volume:
    """Return what is mounted: the volume itself, or the one that has its version."""
    version = versions.find(volume, wish.version) if wish.version else None
    return versions.volume_of(version) if version else volume


def _faults(wishes: Sequence[MountWish], own_paths: Collection[str]) -> list[str]:
    faults = []
    if len(wishes) > MOST:
        faults.append(_("At most %(most)s volumes can be mounted.") % {"most": MOST})
    if len({wish.volume for wish in wishes}) < len(wishes):
        faults.append(_("Each volume can be mounted once."))
    taken = [*RESERVED, *own_paths]
    for wish in wishes:
        if not PATH.fullmatch(wish.path) or len(wish.path) > LONGEST_PATH or "/.." in wish.path:
            faults.append(_("“%(path)s” is no path: use one like /data.") % {"path": wish.path})
        elif any(overlap(wish.path, other) for other in taken):
            faults.append(_("Something else is at %(path)s: use a path like /data.") % {"path": wish.path})
        taken.append(wish.path)
    return faults


def overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _fault_of(actor: Actor, volume: Volume, cluster: Cluster, wish: MountWish) -> str:
    name = {"name": volume.name}
    if volume.bin_until is not None:
        return _("“%(name)s” is in the bin.") % name
    if volume.cluster_id != cluster.pk:
        return _("“%(name)s” is in another cluster than the pool.") % name
    if volume.kind == Kind.SCRATCH and (wish.read_only or wish.version):
        return _("“%(name)s” is empty at each start: mount it to write (read_only: false).") % name
    if not volume.is_inspected:
        return _("“%(name)s” is adopted: its files are looked at first.") % name
    if volume.is_read_only and not wish.read_only:
        return _("“%(name)s” is adopted: mount it read-only until its owner has confirmed it.") % name
    if not may_mount(volume, actor.user.pk, read_only=wish.read_only):
        if volume.shared == Shared.READ:
            return _("“%(name)s” is shared to read: mount it read-only.") % name
        return _("“%(name)s” is not shared with you.") % name
    return _fault_of_version(volume, wish) if wish.version else ""


def _fault_of_version(volume: Volume, wish: MountWish) -> str:
    data = {"name": volume.name, "version": wish.version}
    if not wish.read_only:
        return _("A version cannot be written to: mount version %(version)s of “%(name)s” read-only.") % data
    if versions.find(volume, wish.version) is None and not wish.is_promised:
        if wish.version == LATEST:
            return _("“%(name)s” has no version yet.") % data
        return _("“%(name)s” has no version %(version)s.") % data
    return ""


def may_mount(volume: Volume, user: Any, *, read_only: bool) -> bool:
    """Return True if a member of the volume's tenant may mount it so."""
    if volume.kind == Kind.SCRATCH and read_only:
        return False  # there is nothing to read
    if volume.is_read_only and not read_only:
        return False
    shared = (Shared.READ, Shared.WRITE) if read_only else (Shared.WRITE,)
    return bool(volume.owner_id == user) or volume.shared in shared


def wished(mounts: Iterable[Mount]) -> list[tuple[str, MountWish]]:
    """Return what was asked for by those of the mounts that were chosen and stay, each with its volume's name."""
    kept = [one for one in chosen(mounts) if one.turn != Turn.GOING]
    return [
        (
            one.volume.rights.name,
            MountWish(
                volume=one.volume.rights.pk, path=one.path, read_only=one.read_only, version=one.version
            ),
        )
        for one in kept
    ]


# --- for runs


def mounts_of(holders: Iterable[UUID]) -> dict[UUID, list[Mount]]:
    """Return by holder what its present run mounts, or its next if there is none, in order of the paths. One query."""
    return _by_holder(_rows(holders).in_force())


def all_of(holders: Iterable[UUID]) -> dict[UUID, list[Mount]]:
    """Return by holder what its present run mounts and what its next run will. One query."""
    return _by_holder(_rows(holders))


def _rows(holders: Iterable[UUID]) -> Mounts:
    rows = Mount.objects.filter(holder__in=list(holders)).order_by("path")
    return rows.select_related("volume__tenant", "volume__cluster", "volume__source__volume")


def _by_holder(rows: Iterable[Mount]) -> dict[UUID, list[Mount]]:
    found: dict[UUID, list[Mount]] = {}
    for one in rows:
        found.setdefault(one.holder, []).append(one)
    return found


def affinities(holders: Collection[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    """Return the node affinities of the mounted volumes that only some nodes can mount, by holder."""
    return {
        holder: [one.volume.affinity for one in mounts if one.volume.affinity]
        for holder, mounts in mounts_of(holders).items()
    }


def in_the_way(mounts: Sequence[Mount], user: Any) -> tuple[str, dict[str, Any], bool] | None:
    """Return why a run of this person cannot start yet: a code, its data, and whether waiting helps; None if it can."""
    for one in mounts:
        volume, rights = one.volume, one.volume.rights
        data: dict[str, Any] = {"volume": volume.name}
        if volume.problem == "volume_lost":
            return "volume_gone", {"claim": volume.object_name, "volume": volume.bound_to}, False
        is_gone = any(row.bin_until is not None or row.deleted_at for row in (volume, rights))
        if is_gone or volume.phase == Phase.FAILED:
            return "volume_unusable", data, False
        if not may_mount(rights, user, read_only=one.read_only):
            return "volume_not_shared", data, False
        if volume.phase == Phase.PENDING and volume.problem:
            return volume.problem, volume.problem_data, True
        if volume.phase == Phase.PENDING and (volume.source_id or one not in own(mounts)):
            return "volume_being_made", data, True
    return None


def alarm(holder: UUID, run: Any, code: str, data: Mapping[str, Any]) -> None:
    """Notify owners and admins that the data of what a run mounts is in danger. Volumes without data are left out."""
    for one in mounts_of([holder]).get(holder, ()):
        if one.volume.bound_to:
            notices.alarm(one.volume.rights, code, data, key=str(run))


def own(mounts: Iterable[Mount]) -> list[Mount]:
    """Return the mounts of the holder's home and own disk."""
    return [one for one in mounts if one.path in (HOME_PATH, DISK_PATH)]


def chosen(mounts: Iterable[Mount]) -> list[Mount]:
    """Return the mounts that the holder's person chose: all but home and own disk."""
    return [one for one in mounts if one.path not in (HOME_PATH, DISK_PATH)]


def as_json(mounts: Iterable[Mount]) -> list[Mapping[str, Any]]:
    """Return what was chosen, as the API shows it."""
    return [
        {
            "volume": str(one.volume.rights.pk),
            "name": one.volume.rights.name,
            "version": LATEST if one.version == LATEST else int(one.version or 0) or None,
            "path": one.path,
            "read_only": one.read_only,
        }
        for one in chosen(mounts)
    ]

"""Mounts: which volumes the runs of a holder mount, and where. Workspaces call this when they are launched."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Invalid
from accounts.locks import locked
from accounts.models import Tenant
from clusters.models import Cluster

from . import access, notices, versions
from .models import DISK_PATH, HOME_PATH, LATEST, Mount, Phase, Shared, Snapshot, Volume

MOST = 20
LONGEST_PATH = 240
MOST_OFFERED = 100
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


def mount(
    actor: Actor,
    tenant: Tenant,
    cluster: Cluster,
    holder: UUID,
    wishes: Sequence[MountWish],
    own_paths: Collection[str],
) -> None:
    """Let each run of the holder mount these. Raise Invalid for what cannot be mounted, or not there."""
    if not wishes:
        return
    rows = access.visible(actor).filter(pk__in=[wish.volume for wish in wishes])
    volumes = {row.pk: row for row in locked(rows)}
    faults = _faults(wishes, own_paths)
    for wish in wishes:
        volume = volumes.get(wish.volume)
        if volume is None or volume.tenant_id != tenant.pk:
            faults.append(_("There is no volume %(id)s in this tenant.") % {"id": wish.volume})
        elif fault := _fault_of(actor, volume, cluster, wish):
            faults.append(fault)
    if faults:
        raise Invalid(
            "invalid",
            _("Some volumes cannot be mounted."),
            _("See your volumes under Storage."),
            fields={"volumes": faults},
        )
    Mount.objects.bulk_create(
        Mount(
            volume=_mounted(volumes[wish.volume], wish),
            holder=holder,
            path=wish.path,
            read_only=wish.read_only,
            version=wish.version,
        )
        for wish in wishes
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
        elif any(_overlap(wish.path, other) for other in taken):
            faults.append(_("Something else is at %(path)s: use a path like /data.") % {"path": wish.path})
        taken.append(wish.path)
    return faults


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _fault_of(actor: Actor, volume: Volume, cluster: Cluster, wish: MountWish) -> str:
    name = {"name": volume.name}
    if volume.bin_until is not None:
        return _("“%(name)s” is in the bin.") % name
    if volume.cluster_id != cluster.pk:
        return _("“%(name)s” is in another cluster than the pool.") % name
    if not may_mount(volume, actor.user.pk, read_only=wish.read_only):
        if volume.shared == Shared.READ:
            return _("“%(name)s” is shared to read: mount it read-only.") % name
        return _("“%(name)s” is not shared with you.") % name
    return _fault_of_version(volume, wish) if wish.version else ""


def _fault_of_version(volume: Volume, wish: MountWish) -> str:
    data = {"name": volume.name, "version": wish.version}
    if not wish.read_only:
        return _("A version cannot be written to: mount version %(version)s of “%(name)s” read-only.") % data
    if versions.find(volume, wish.version) is None:
        if wish.version == LATEST:
            return _("“%(name)s” has no version yet.") % data
        return _("“%(name)s” has no version %(version)s.") % data
    return ""


def may_mount(volume: Volume, user: Any, *, read_only: bool) -> bool:
    """Return True if a member of the volume's tenant may mount it so."""
    shared = (Shared.READ, Shared.WRITE) if read_only else (Shared.WRITE,)
    return bool(volume.owner_id == user) or volume.shared in shared


@dataclass(frozen=True)
class Offer:
    """A way to mount a volume, as a form offers it."""

    label: str
    wish: MountWish


def offers(actor: Actor) -> dict[str, Offer]:
    """Return how the actor may mount the volumes of their tenants, by a key for forms. One query."""
    rows = access.visible(actor).filter(bin_until=None).exclude(phase__in=(Phase.FAILED, Phase.DELETING))
    theirs = rows.filter(Q(owner=actor.user, is_main=False) | ~Q(shared=Shared.NO)).select_related("tenant")
    found: dict[str, Offer] = {}
    ready = Snapshot.objects.filter(volume=OuterRef("pk"), number__isnull=False, phase=Phase.READY)
    rows = theirs.annotate(has_version=Exists(ready)).order_by("name", "pk")
    for volume in rows[:MOST_OFFERED]:
        facts = {"name": volume.name, "tenant": volume.tenant.name, "path": path_for(volume)}
        texts = {
            True: _("%(name)s of %(tenant)s at %(path)s, to read"),
            False: _("%(name)s of %(tenant)s at %(path)s, to read and write"),
        }
        for read_only, text in texts.items():
            if may_mount(volume, actor.user.pk, read_only=read_only):
                wish = MountWish(volume=volume.pk, path=path_for(volume), read_only=read_only)
                found[f"{volume.pk}:{'r' if read_only else 'w'}"] = Offer(text % facts, wish)
        if volume.has_version and may_mount(volume, actor.user.pk, read_only=True):
            text = _("%(name)s of %(tenant)s at %(path)s, its latest version")
            wish = MountWish(volume=volume.pk, path=path_for(volume), version=LATEST)
            found[f"{volume.pk}:v"] = Offer(text % facts, wish)
    return found


def path_for(volume: Volume) -> str:
    """Return where a form mounts the volume: its name, with dashes for what a path cannot have."""
    name = re.sub(r"[^\w.-]+", "-", volume.name, flags=re.ASCII).strip("-.")
    return f"/volumes/{name or volume.pk}"


# --- for runs


def mounts_of(holders: Iterable[UUID]) -> dict[UUID, list[Mount]]:
    """Return the mounts by holder, in order of their paths. One query."""
    found: dict[UUID, list[Mount]] = {}
    rows = Mount.objects.filter(holder__in=list(holders)).order_by("path")
    for one in rows.select_related("volume__tenant", "volume__cluster", "volume__source__volume"):
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
        if volume.phase == Phase.PENDING and one not in own(mounts):
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


def as_json(mounts: Iterable[Mount]) -> list[Mapping[str, Any]]:
    """Return what was chosen at the launch, as the API shows it: without home and own disk."""
    return [
        {
            "volume": str(one.volume.rights.pk),
            "name": one.volume.rights.name,
            "version": LATEST if one.version == LATEST else int(one.version or 0) or None,
            "path": one.path,
            "read_only": one.read_only,
        }
        for one in mounts
        if one.path not in (HOME_PATH, DISK_PATH)
    ]

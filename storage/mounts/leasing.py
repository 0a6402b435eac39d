"""The lease of volumes: an admitted claim holds what its holder mounts, until the end of its pods is proven. What the
holder will mount from its next start on is not held yet.

Nothing is written for it: a claim that is not released is the lease, so that no crash can lose or leave one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from quotas import holders
from quotas.models import Claim
from quotas.scheduling import Lease
from storage.models import Access, FilesSession, Kind, Mount, Phase, Snapshot, Volume

WAITS_FOR_VOLUME = ("volume_in_use", "volume_still_attached")


class Leases:
    """The `quotas.pools.leases.Book` of volumes."""

    def wanted(self, asking: Collection[UUID]) -> Mapping[UUID, tuple[Lease, ...]]:
        mounts = list(Mount.objects.in_force().filter(holder__in=asking).select_related("volume"))
        if not mounts:
            return {}
        claims = Claim.objects.filter(holder_id__in={mount.holder for mount in mounts}).exclude(
            state=Claim.State.RELEASED
        )
        return _by_holder(mounts, holders.names_of(claims))

    def held(self, volumes: Collection[UUID]) -> tuple[Lease, ...]:
        mounts = list(Mount.objects.in_force().filter(volume__in=volumes).select_related("volume"))
        claims = list(running({mount.holder for mount in mounts}))
        names = holders.names_of(claims)
        admitted = {claim.holder_id for claim in claims}
        found = _by_holder((mount for mount in mounts if mount.holder in admitted), names)
        runs = tuple(lease for leases in found.values() for lease in leases)
        leases = runs + files(volumes)
        return leases + publications(volumes) + attached(volumes, but={lease.volume for lease in leases})


def publications(volumes: Collection[UUID]) -> tuple[Lease, ...]:
    """Return the leases of versions that are being taken: no writer begins meanwhile."""
    rows = Snapshot.objects.filter(volume__in=volumes, number__isnull=False, phase=Phase.PENDING)
    return tuple(
        Lease(
            volume=row.volume_id,
            name=row.volume.name,
            holder=row.pk,
            holder_name=_("version %(number)s, which is being published") % {"number": row.number},
        )
        for row in rows.select_related("volume")
    )


def attached(volumes: Collection[UUID], but: Collection[UUID]) -> tuple[Lease, ...]:
    """Return the leases of nodes that have a volume attached though nobody uses it, `but` those volumes that somebody
    does: such a node may still have it mounted, and a second mount could find no file system and make one."""
    rows = Volume.objects.filter(pk__in=volumes).exclude(pk__in=but).exclude(attached_to=[])
    return tuple(
        Lease(
            volume=row.pk,
            name=row.name,
            holder=row.pk,
            holder_name=_("node %(name)s") % {"name": ", ".join(row.attached_to)},
            writes=True,
            is_exclusive=True,
            nodes=tuple(row.attached_to),
        )
        for row in rows
    )


def files(volumes: Collection[UUID]) -> tuple[Lease, ...]:
    """Return the leases of sessions that serve files: until the end of their pods is proven."""
    rows = FilesSession.objects.filter(volume__in=volumes, ended_at=None).select_related("volume", "by")
    return tuple(lease for row in rows if (lease := lease_of_session(row)) is not None)


def running(of: Collection[UUID]) -> Any:
    """Return the admitted claims of these holders."""
    return Claim.objects.filter(state=Claim.State.ADMITTED, holder_id__in=of)


def _by_holder(mounts: Iterable[Mount], names: Mapping[UUID, str]) -> dict[UUID, tuple[Lease, ...]]:
    found: defaultdict[UUID, tuple[Lease, ...]] = defaultdict(tuple)
    for mount in mounts:
        if (lease := lease_of(mount, names.get(mount.holder, ""))) is not None:
            found[mount.holder] += (lease,)
    return dict(found)


def lease_of(mount: Mount, holder_name: str) -> Lease | None:
    """Return the lease that a mount needs; None for a home that several nodes can mount: its runs share it.

    A copy that does not have its files yet keeps the run in the queue, where it holds no GPU.
    """
    return _lease(mount.volume, mount.holder, holder_name, writes=not mount.read_only)


def lease_of_session(session: FilesSession) -> Lease | None:
    """Return the lease that a files session needs: as a run's."""
    name = _("open files (%(person)s)") % {"person": session.by.get_username()}
    return _lease(session.volume, session.pk, name, writes=session.writes)


def _lease(volume: Volume, holder: UUID, holder_name: str, *, writes: bool) -> Lease | None:
    is_exclusive = volume.access not in (Access.MANY, Access.READ)
    is_copy = volume.source_id is not None and not volume.is_version
    is_being_made = is_copy and volume.phase == Phase.PENDING
    if volume.kind == Kind.HOME and not is_exclusive and not is_being_made:
        return None
    return Lease(
        volume=volume.pk,
        name=volume.name,
        holder=holder,
        holder_name=holder_name,
        writes=writes,
        is_exclusive=is_exclusive,
        is_being_made=is_being_made,
    )


# --- for people


@dataclass(frozen=True)
class Use:
    """Use of a volume: runs that have it mounted, and the lease with those who wait for it."""

    mounts: list[dict[str, Any]]
    lease: dict[str, Any]
    opened: list[str]  # sessions that serve its files


def _unused() -> Use:
    return Use([], {"mode": "free", "holders": [], "waiting": []}, [])


NO_USE = _unused()


def _files_uses(volumes: Collection[UUID]) -> dict[UUID, Use]:
    """Return the use of each volume whose files are open."""
    found: dict[UUID, Use] = {}
    for lease in files(volumes):
        use = found.setdefault(lease.volume, _unused())
        use.lease["holders"].append(lease.holder_name)
        use.opened.append(lease.holder_name)
        use.lease["mode"] = "writer" if lease.writes else "readers"
    return found


def uses_of(volumes: Collection[UUID]) -> dict[UUID, Use]:
    """Return the use of each volume that somebody mounts. Four queries, and one for each kind of holder."""
    mounts = list(Mount.objects.in_force().filter(volume__in=volumes).select_related("volume"))
    found = _files_uses(volumes)
    if not mounts:
        return found
    live = Claim.objects.filter(holder_id__in={mount.holder for mount in mounts})
    # Of the claims of a job, one that is admitted counts: "admitted" comes last.
    claims = {one.holder_id: one for one in live.exclude(state=Claim.State.RELEASED).order_by("-state")}
    names = holders.names_of(claims.values())
    for mount in sorted(mounts, key=lambda mount: names.get(mount.holder, "")):
        if (claim := claims.get(mount.holder)) is None:
            continue
        use = found.setdefault(mount.volume_id, _unused())
        name = names.get(mount.holder, "")
        if claim.state == Claim.State.ADMITTED:
            kind = str(claim.holder_kind)
            where = {"run": str(claim.pk), "path": mount.path, "read_only": mount.read_only}
            use.mounts.append({kind: str(mount.holder), "name": name, **where})
            use.lease["holders"].append(name)
            if use.lease["mode"] != "writer":
                use.lease["mode"] = "readers" if mount.read_only else "writer"
        elif claim.reason_code in WAITS_FOR_VOLUME and claim.reason_data.get("volume") == mount.volume.name:
            use.lease["waiting"].append(name)
    return found

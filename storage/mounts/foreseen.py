"""What a launch that is not made yet would mount: the leases that it needs, and where its volumes are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID, uuid4

from accounts.access import Actor
from accounts.models import Tenant
from clusters.models import Cluster
from quotas.estimates import Needs
from storage import versions
from storage.models import HOME_PATH, Mount, Volume

from . import mounting
from .leasing import lease_of
from .mounting import MountWish


def needs(
    actor: Actor, tenant: Tenant, cluster: Cluster, wishes: Sequence[MountWish], own_paths: Collection[str]
) -> Mapping[UUID, Needs]:
    """Return by cluster what a launch of the actor's would wait for. Raise Invalid as the launch itself would."""
    holder = uuid4()
    found: defaultdict[UUID, Needs] = defaultdict(Needs)
    for mount in _mounts(actor, tenant, cluster, wishes, own_paths):
        mount.holder = holder
        lease, volume = lease_of(mount, ""), mount.volume
        before = found[volume.cluster_id]
        found[volume.cluster_id] = Needs(
            affinities=(*before.affinities, *([volume.affinity] if volume.affinity else [])),
            leases=(*before.leases, *([lease] if lease else [])),
        )
    return found


def _mounts(
    actor: Actor, tenant: Tenant, cluster: Cluster, wishes: Sequence[MountWish], own_paths: Collection[str]
) -> Iterator[Mount]:
    """Yield the mounts without saving them: the homes that are there already, and what was chosen."""
    homes = list(
        Volume.objects.filter(
            tenant=tenant, owner=actor.user, is_main=True, deleted_at__isnull=True, bin_until__isnull=True
        )
    )
    volumes = mounting.check(
        actor, tenant, cluster, wishes, own_paths, [home.pk for home in homes], lock=False
    )
    for home in homes:
        yield Mount(volume=home, path=HOME_PATH, read_only=False)
    for wish in wishes:
        volume = _there(volumes[wish.volume], wish)
        if volume is not None:
            yield Mount(volume=volume, path=wish.path, read_only=wish.read_only)


def _there(volume: Volume, wish: MountWish) -> Volume | None:
    """Return what would be mounted; None for a version that no run has mounted yet: it is nowhere, and shared."""
    version = versions.find(volume, wish.version) if wish.version else None
    return versions.mounted(version) if version else volume

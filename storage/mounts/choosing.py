"""Choices of a form: how a person may mount volumes, and what they ticked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.models import Tenant
from clusters.models import Cluster
from storage import access
from storage.models import LATEST, Mount, Phase, Shared, Snapshot, Volume

from .mounting import MountWish, may_mount, own, wished

MOST_OFFERED = 100


@dataclass(frozen=True)
class Offer:
    """A way to mount a volume, as a form offers it."""

    label: str
    wish: MountWish


def offers(actor: Actor, tenant: Tenant | None = None, cluster: Cluster | None = None) -> dict[str, Offer]:
    """Return how the actor may mount volumes, by a key for forms: those of all their tenants, or of one. One query."""
    rows = access.visible(actor).filter(bin_until=None).exclude(phase__in=(Phase.FAILED, Phase.DELETING))
    theirs = rows.filter(Q(owner=actor.user, is_main=False) | ~Q(shared=Shared.NO)).select_related("tenant")
    if tenant is not None:
        theirs = theirs.filter(tenant=tenant, cluster=cluster)
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
                found[wish.key] = Offer(text % facts, wish)
        if volume.has_version and may_mount(volume, actor.user.pk, read_only=True):
            text = _("%(name)s of %(tenant)s at %(path)s, its latest version")
            wish = MountWish(volume=volume.pk, path=path_for(volume), version=LATEST)
            found[wish.key] = Offer(text % facts, wish)
    return found


def offers_for(
    actor: Actor, tenant: Tenant, cluster: Cluster, mounts: Iterable[Mount]
) -> tuple[dict[str, Offer], list[str]]:
    """Return how the actor may change what a holder mounts, and the keys of what it is to mount now."""
    wishes = wished(mounts)
    now = {wish.key: Offer(_label(wish, name), wish) for name, wish in wishes}
    held = {one.volume_id for one in own(mounts)}
    others = {key: one for key, one in offers(actor, tenant, cluster).items() if one.wish.volume not in held}
    return now | {key: one for key, one in others.items() if key not in now}, list(now)


def _label(wish: MountWish, name: str) -> str:
    data = {"name": name, "path": wish.path, "version": wish.version}
    if wish.version == LATEST:
        return _("%(name)s at %(path)s, its latest version") % data
    if wish.version:
        return _("%(name)s at %(path)s, version %(version)s") % data
    if wish.read_only:
        return _("%(name)s at %(path)s, to read") % data
    return _("%(name)s at %(path)s, to read and write") % data


def of_choices(offers: Mapping[str, Offer], keys: Iterable[str]) -> list[MountWish]:
    """Return the wishes for the keys that a form sent; where several are of one volume, that which writes."""
    ticked = [offers[key].wish for key in keys]
    by_volume = {wish.volume: wish for wish in sorted(ticked, key=lambda wish: not wish.read_only)}
    return list(by_volume.values())


def path_for(volume: Volume) -> str:
    """Return where a form mounts the volume: its name, with dashes for what a path cannot have."""
    name = re.sub(r"[^\w.-]+", "-", volume.name, flags=re.ASCII).strip("-.")
    return f"/volumes/{name or volume.pk}"

"""Choices of a form: how a person may mount each volume, and what they chose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.models import Tenant
from clusters.models import Cluster
from storage import access, versions
from storage.models import LATEST, NOT_LOOKED_AT, Mount, Phase, Shared, Snapshot, Volume

from .mounting import MountWish, may_mount, own, wished

MOST_OFFERED = 100


@dataclass(frozen=True)
class Offer:
    """A way to mount a volume, as a form offers it. `about`: what tells the volume from others of its name."""

    name: str
    about: str
    how: str
    wish: MountWish

    @property
    def label(self) -> str:
        return f"{self.name}: {self.how}"


@dataclass(frozen=True)
class Row:
    """A volume in a form, with its ways to be mounted as (key, word, True if it is chosen)."""

    volume: UUID
    name: str
    about: str
    path: str
    ways: list[tuple[str, str, bool]]


class OneWayEach(forms.SelectMultiple):
    """A select for each volume, all of one name. What is not mounted is sent as an empty value."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [key for key in super().value_from_datadict(data, files, name) if key]


def offers(actor: Actor, tenant: Tenant | None = None, cluster: Cluster | None = None) -> dict[str, Offer]:
    """Return how the actor may mount volumes of all their tenants, or of one, by a key for forms. Two queries."""
    rows = access.visible(actor).filter(bin_until=None).exclude(phase__in=(Phase.FAILED, Phase.DELETING))
    theirs = rows.filter(Q(owner=actor.user, is_main=False) | ~Q(shared=Shared.NO))
    if tenant is not None:
        theirs = theirs.filter(tenant=tenant, cluster=cluster)
    theirs = theirs.exclude(NOT_LOOKED_AT)
    volumes = list(theirs.select_related("tenant", "owner").order_by("name", "pk")[:MOST_OFFERED])
    published = versions.of([volume.pk for volume in volumes])
    return {
        offer.wish.key: offer
        for volume in volumes
        for offer in ways(actor, volume, published.get(volume.pk, []))
    }


def ways(actor: Actor, volume: Volume, published: Iterable[Snapshot]) -> Iterator[Offer]:
    """Yield how the actor may mount a volume with these versions, newest first."""
    whose = [] if volume.owner_id == actor.user.pk else [volume.owner.get_username()]
    about = " · ".join([volume.get_kind_display(), volume.tenant.name, *whose])
    wish = MountWish(volume=volume.pk, path=path_for(volume))
    if may_mount(volume, actor.user.pk, read_only=True):
        ready = [one for one in published if one.phase == Phase.READY]
        if ready:
            yield Offer(volume.name, about, _way(LATEST, read_only=True), replace(wish, version=LATEST))
        for one in ready:
            how = " · ".join(filter(None, [_way(str(one.number), read_only=True), one.note]))
            yield Offer(volume.name, about, how, replace(wish, version=str(one.number)))
        yield Offer(volume.name, about, _way("", read_only=True), wish)
    if may_mount(volume, actor.user.pk, read_only=False):
        yield Offer(volume.name, about, _way("", read_only=False), replace(wish, read_only=False))


def _way(version: str, *, read_only: bool) -> str:
    if version == LATEST:
        return _("its latest version, read-only")
    if version:
        return _("version %(number)s, read-only") % {"number": version}
    return _("read-only") if read_only else _("read and write")


def with_latest(offers: Mapping[str, Offer], volumes: Iterable[UUID]) -> dict[str, Offer]:
    """Return the offers, with the latest version of these volumes as far as they may be read: one will be published."""
    found = dict(offers)
    for volume in volumes:
        if (read := offers.get(MountWish(volume=volume, path="").key)) is not None:
            latest = replace(read, how=_way(LATEST, read_only=True), wish=replace(read.wish, version=LATEST))
            found.setdefault(latest.wish.key, latest)
    return found


def offers_for(
    actor: Actor, tenant: Tenant, cluster: Cluster, mounts: Iterable[Mount]
) -> tuple[dict[str, Offer], list[str]]:
    """Return how the actor may change what a holder mounts, and the keys of what it is to mount now."""
    wishes = wished(mounts)
    paths = {wish.volume: wish.path for _name, wish in wishes}
    own_ones = {one.volume_id for one in own(mounts)}
    found = {
        key: replace(one, wish=replace(one.wish, path=paths.get(one.wish.volume, one.wish.path)))
        for key, one in offers(actor, tenant, cluster).items()
        if one.wish.volume not in own_ones
    }
    for name, wish in wishes:  # also what is no longer offered: it stays until they choose otherwise
        found.setdefault(wish.key, Offer(name, "", _way(wish.version, read_only=wish.read_only), wish))
    return found, [wish.key for _name, wish in wishes]


def rows(offers: Mapping[str, Offer], chosen: Collection[str]) -> list[Row]:
    """Return the volumes of a form in order, each with its ways to be mounted."""
    found: dict[UUID, Row] = {}
    for key, one in offers.items():
        row = found.setdefault(one.wish.volume, Row(one.wish.volume, one.name, one.about, one.wish.path, []))
        row.ways.append((key, one.how, key in chosen))
    return list(found.values())


def of_choices(offers: Mapping[str, Offer], keys: Iterable[str]) -> list[MountWish]:
    """Return the wishes for the keys that a form sent; where several are of one volume, that which writes."""
    ticked = [offers[key].wish for key in keys]
    by_volume = {wish.volume: wish for wish in sorted(ticked, key=lambda wish: not wish.read_only)}
    return list(by_volume.values())


def path_for(volume: Volume) -> str:
    """Return where a form mounts the volume: its name, with dashes for what a path cannot have."""
    name = re.sub(r"[^\w.-]+", "-", volume.name, flags=re.ASCII).strip("-.")
    return f"/volumes/{name or volume.pk}"

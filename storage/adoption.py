"""Adopt storage that is there already: an admin names it and its owner, an inspection says what is in it, and the owner
confirms it before anybody may write. Each step writes the row; the keeper carries it out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, tenant_by_slug
from accounts.errors import Conflict, NotAllowed
from accounts.locks import locked
from accounts.models import Membership, Role, Scope, Tenant, User
from accounts.trail import audit
from clusters.models import Cluster
from quotas import admission

from . import access, changes, enqueue, notices
from .cluster.look import changing
from .models import Access, Adoption, Kind, Volume
from .mounts.leasing import Leases
from .sources import refuse_binned

OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
KINDS = (Kind.DATASET, Kind.HOME, Kind.DISK)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Storage in a cluster: a persistent volume that nobody uses, or a PVC in the namespace of the tenant."""

    name: str
    kind: str
    owner: str
    cluster: str = ""
    persistent_volume: str = ""
    claim: str = ""


def adopt(actor: Actor, tenant: str, found: Found) -> Volume:
    """Make it a volume of its owner, to be read only. Admins alone: any tenant's data could be behind it."""
    actor.require(Scope.ADMIN)
    place = tenant_by_slug(actor, tenant)
    with transaction.atomic(), changes.unique(found.name):
        cluster = _checked(place, found)
        admission.lock(cluster.pk)  # one at a time
        owner = locked(User.objects.filter(pk__in=_members(place, found.owner))).get()
        changes.refuse_too_many(owner, place)
        _refuse_known(place, cluster, found)
        volume = Volume.objects.create(
            tenant=place,
            owner=owner,
            cluster=cluster,
            name=found.name,
            kind=found.kind,
            requested_mib=0,  # what it has is known when it was looked at
            bound_to=found.persistent_volume,
            claim_name=found.claim,
            adoption=Adoption.ASKED,
        )
        what = found.persistent_volume or found.claim
        audit.record(
            actor, "volume.adopt", target=volume, tenant=place, data={"of": what, "owner": found.owner}
        )
        notices.received(actor, volume, "adopted")
        enqueue.look([volume.pk])
    return volume


def confirm(actor: Actor, volume: Volume) -> bool:
    """Let the adopted volume be written to. False: it is confirmed already."""
    _require_owner(actor, volume)
    with transaction.atomic():
        with changing(volume) as row:
            refuse_binned(row)
            if row.adoption in ("", Adoption.CONFIRMED):
                return False
            if not row.is_inspected:
                raise Conflict("not_inspected", _("It was not inspected yet."), _("Wait for the inspection."))
            if row.access == Access.READ:
                text = _("Its storage can only be read.")
                raise Conflict("only_read", text, _("Copy its files into a new volume to change them."))
            row.adoption = Adoption.CONFIRMED
        audit.record(actor, "volume.confirm", target=row, tenant=row.tenant)
        enqueue.look([row.pk])
    return True


def inspect_again(actor: Actor, volume: Volume) -> bool:
    """Look anew what is in an adopted volume that is not confirmed. False: an inspection is under way."""
    if not actor.is_admin:
        _require_owner(actor, volume)
    with transaction.atomic():
        admission.lock(volume.cluster_id)
        with changing(volume) as row:
            refuse_binned(row)
            if row.adoption != Adoption.READ_ONLY or row.inspection is None:
                return False
            if held := Leases().held([row.pk]):
                by = ", ".join(sorted(lease.holder_name for lease in held))
                text = _("“%(volume)s” is mounted by %(by)s.") % {"volume": row.name, "by": by}
                raise Conflict("in_use", text, _("Stop what uses it first."))
            row.inspection = None
        enqueue.look([row.pk])
    return True


def _require_owner(actor: Actor, volume: Volume) -> None:
    access.require_manage(actor, volume)
    if volume.owner_id != actor.user.pk:
        text = _("Only %(owner)s, its owner, can confirm what is in it.")
        data = {"owner": volume.owner.get_username()}
        raise NotAllowed("not_yours", text % data, _("Ask them, or hand it to somebody else first."))


# --- checks


def _checked(tenant: Tenant, found: Found) -> Cluster:
    faults = changes.faults_of_name(found.name)
    cluster = changes.cluster_named(found.cluster, faults)
    if found.kind not in KINDS:
        faults["kind"] = [_("A home, a disk or a dataset can be adopted.")]
    if bool(found.persistent_volume) == bool(found.claim):
        faults["persistent_volume"] = [_("Name a persistent volume or a PVC of the tenant: one of the two.")]
    elif not OBJECT_NAME.fullmatch(found.persistent_volume or found.claim):
        faults["persistent_volume" if found.persistent_volume else "claim"] = [_("No object has this name.")]
    if not _members(tenant, found.owner).exists():
        faults["owner"] = [_("Name a member or an owner of the tenant.")]
    if faults or cluster is None:
        raise changes.invalid(faults)
    return cluster


def _members(tenant: Tenant, username: str) -> QuerySet[Any]:
    """People of this name who may own a volume in the tenant."""
    members = Membership.objects.filter(tenant=tenant, user__username=username).exclude(role=Role.VIEWER)
    return members.values("user")


def _refuse_known(tenant: Tenant, cluster: Cluster, found: Found) -> None:
    rows = Volume.objects.filter(cluster=cluster, deleted_at=None).select_related("owner")
    if found.persistent_volume:
        known = rows.filter(bound_to=found.persistent_volume).first()
    else:
        known = next((row for row in rows.filter(tenant=tenant) if row.object_name == found.claim), None)
    if known is not None:
        text = _("It is a volume already: “%(name)s” of %(owner)s.")
        data = {"name": known.name, "owner": known.owner.get_username()}
        raise Conflict("already_adopted", text % data, _("Look in the list of volumes, and in the bins."))

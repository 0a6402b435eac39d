"""Access rules for volumes. One that the actor may not see is answered like one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.access import Actor, role_in, visible_tenants
from accounts.errors import NotAllowed, NotThere
from accounts.models import Role, Scope, Tenant

from .models import Volume

RELATED = ("tenant", "owner", "cluster")


def visible(actor: Actor) -> QuerySet[Volume]:
    """Volumes of the actor's tenants that are not deleted for good. A version is shown with its dataset."""
    return Volume.objects.filter(tenant__in=visible_tenants(actor), deleted_at__isnull=True, is_version=False)


def get(actor: Actor, volume_id: UUID) -> Volume:
    """Return the volume or raise NotThere."""
    volume = visible(actor).select_related(*RELATED).filter(pk=volume_id).first()
    if volume is None:
        raise NotThere("not_found", _("There is no such volume."), _("Look in the list of volumes."))
    return volume


def may_manage(actor: Actor, volume: Volume) -> bool:
    """Return True if the actor may change, delete and hand on the volume: its owner, or an owner of the tenant."""
    role = role_in(actor, volume.tenant)
    return role == Role.OWNER or (volume.owner_id == actor.user.pk and role == Role.MEMBER)


def manageable(actor: Actor, tenants: Iterable[Tenant]) -> QuerySet[Volume]:
    """Volumes of these tenants that the actor may manage. The actor is a member or owner of each tenant."""
    tenants = list(tenants)
    owned = [tenant for tenant in tenants if role_in(actor, tenant) == Role.OWNER]
    theirs = Q(owner=actor.user) | Q(tenant__in=owned)
    return visible(actor).filter(theirs, tenant__in=tenants)


def require_create(actor: Actor, tenant: Tenant) -> None:
    """Refuse viewers: only members and owners of the tenant may have volumes."""
    actor.require(Scope.VOLUMES)
    if role_in(actor, tenant, hold=True) not in (Role.OWNER, Role.MEMBER):
        raise NotAllowed(
            "viewer_only_looks",
            _("You may look at this tenant's volumes, not create any."),
            _("Ask an owner of the tenant to make you a member."),
        )


def require_manage(actor: Actor, volume: Volume) -> None:
    actor.require(Scope.VOLUMES)
    if not may_manage(actor, volume):
        raise NotAllowed(
            "not_yours",
            _("This volume belongs to %(owner)s.") % {"owner": volume.owner.get_username()},
            _("Ask them or an owner of the tenant."),
        )

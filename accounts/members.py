"""Tenants and who is in them with which role."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import audit, signals
from accounts.access import Actor, not_there, require_owner
from accounts.errors import Conflict, Invalid
from accounts.models import Membership, Role, Scope, Tenant, User, valid_slug


def create_tenant(actor: Actor, *, slug: str, name: str) -> Tenant:
    actor.require(Scope.ADMIN)
    actor.require_whole_person()
    try:
        valid_slug(slug)
    except ValidationError as error:
        text = str(error.message)
        raise Invalid("invalid", text, _("Choose another one."), fields={"slug": [text]}) from None
    try:
        with transaction.atomic():
            tenant = Tenant.objects.create(slug=slug, name=name)
            audit.record(actor, "tenant.create", target=tenant, tenant=tenant, data={"slug": slug})
    except IntegrityError:
        text = _("There is a tenant “%(slug)s” already.") % {"slug": slug}
        raise Conflict("tenant_exists", text, _("Choose another slug."), fields={"slug": [text]}) from None
    return tenant


def set_role(actor: Actor, tenant: Tenant, username: str, role: str) -> Membership:
    """Let a person in, or give them another role."""
    _require_may_change(actor, tenant)
    with transaction.atomic():
        _lock(tenant)
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            text = _("There is no person with this name.")
            raise Invalid(
                "unknown_person", text, _("Ask them how they sign in."), fields={"username": [text]}
            )
        membership = Membership.objects.filter(tenant=tenant, user=user).first()
        if membership is not None and membership.role == Role.OWNER and role != Role.OWNER:
            _require_other_owner(tenant, membership)
        membership, created = Membership.objects.update_or_create(
            tenant=tenant, user=user, defaults={"role": role}
        )
        action = "member.add" if created else "member.change"
        audit.record(actor, action, target=user, tenant=tenant, data={"username": username, "role": role})
        signals.access_changed.send(sender=Membership, user=user)
    return membership


def remove(actor: Actor, tenant: Tenant, username: str) -> None:
    """Take a person out: what they still run there is its owners' to see and stop."""
    _require_may_change(actor, tenant)
    with transaction.atomic():
        _lock(tenant)
        membership = member(tenant, username)
        if membership.role == Role.OWNER:
            _require_other_owner(tenant, membership)
        membership.delete()
        audit.record(
            actor, "member.remove", target=membership.user, tenant=tenant, data={"username": username}
        )
        signals.access_changed.send(sender=Membership, user=membership.user)


def member(tenant: Tenant, username: str) -> Membership:
    found = Membership.objects.select_related("user").filter(tenant=tenant, user__username=username).first()
    if found is None:
        raise not_there()
    return found


def set_active(actor: Actor, user: User, *, active: bool) -> None:
    """Deactivated people lose sessions, tokens, keys and open pages at once; their rows stay."""
    actor.require(Scope.ADMIN)
    actor.require_whole_person()
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_active=active)
        audit.record(actor, "user.activate" if active else "user.deactivate", target=user)
        signals.access_changed.send(sender=User, user=user)


def _require_may_change(actor: Actor, tenant: Tenant) -> None:
    """Who is let in decides who may run work here: a token needs that scope."""
    require_owner(actor, tenant)
    actor.require(Scope.WORKSPACES)


def _lock(tenant: Tenant) -> None:
    """One change of members at a time, or two owners could remove each other."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)


def _require_other_owner(tenant: Tenant, membership: Membership) -> None:
    if not tenant.memberships.filter(role=Role.OWNER).exclude(pk=membership.pk).exists():
        raise Conflict(
            "last_owner",
            _("This is the only owner of %(tenant)s.") % {"tenant": tenant.name},
            _("Make somebody else an owner first."),
        )

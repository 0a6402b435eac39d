"""Tenants, their members, and the members' roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor, not_there, require_owner
from accounts.credentials import sessions
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.models import Membership, Role, Scope, Tenant, User, valid_slug
from accounts.text import visible
from accounts.trail import audit


def create_tenant(actor: Actor, *, slug: str, name: str) -> Tenant:
    actor.require_admin()
    for field, value, check in (("slug", slug, valid_slug), ("name", name, visible)):
        try:
            check(value)
        except ValidationError as error:
            text = str(error.message)
            raise Invalid("invalid", text, _("Choose another one."), fields={field: [text]}) from None
    try:
        with transaction.atomic():
            tenant = Tenant.objects.create(slug=slug, name=name)
            audit.record(actor, "tenant.create", target=tenant, tenant=tenant, data={"slug": slug})
    except IntegrityError:
        text = _("There is a tenant “%(slug)s” already.") % {"slug": slug}
        raise Conflict("tenant_exists", text, _("Choose another slug."), fields={"slug": [text]}) from None
    return tenant


def set_role(actor: Actor, tenant: Tenant, username: str, role: str, *, was: str | None = None) -> Membership:
    """Add a member, or change a member's role. `username` may be their e-mail address.

    `was` is the role that the actor saw when they decided ("" for somebody who is not a member). Raise Conflict if the
    role has changed since.
    """
    with _changing_members(actor, tenant):
        user = _person(username, tenant)
        membership = Membership.objects.filter(tenant=tenant, user=user).first()
        _require_as_seen(user, membership, was)
        if membership is not None and membership.role == Role.OWNER and role != Role.OWNER:
            _require_other_owner(tenant, membership)
        membership, created = Membership.objects.update_or_create(
            tenant=tenant, user=user, defaults={"role": role, "by_group": False}
        )
        action = "member.add" if created else "member.change"
        data = {"username": user.username, "role": role}
        audit.record(actor, action, target=user, tenant=tenant, data=data)
        signals.send_access_changed(user)
    return membership


def remove(actor: Actor, tenant: Tenant, username: str) -> None:
    """Remove a member. The tenant's owners can see and stop what they still run there."""
    with _changing_members(actor, tenant):
        membership = member(tenant, username)
        if membership.user.service_of_id is not None:
            raise Conflict(
                "service_account",
                _("%(name)s is a service account of this tenant.") % {"name": username},
                _("Delete the service account instead."),
            )
        if membership.role == Role.OWNER:
            _require_other_owner(tenant, membership)
        membership.delete()
        audit.record(
            actor, "member.remove", target=membership.user, tenant=tenant, data={"username": username}
        )
        signals.send_access_changed(membership.user)


def member(tenant: Tenant, username: str) -> Membership:
    found = Membership.objects.select_related("user").filter(tenant=tenant, user__username=username).first()
    if found is None:
        raise not_there()
    return found


def set_active(actor: Actor, user: User, *, active: bool) -> None:
    """Activate or deactivate a person. Deactivated, their sessions, tokens, keys and open pages end at once; rows stay.

    Activated again, they have their memberships, tokens and keys as before, and sign in again.
    """
    with _changing_people(actor, user, one_stays=not active):
        _set_active(actor, user, active=active)


def follow_directory(user: User, *, is_there: bool) -> bool:
    """Deactivate a person who left the directory, or activate them again if the directory's sync did that. Return
    False if nothing had to change."""
    with transaction.atomic():
        row = locked(User.objects.all()).get(pk=user.pk)
        if row.is_active == is_there or (is_there and row.left_directory_at is None):
            return False
        _set_active(None, row, active=is_there)
    return True


def _set_active(actor: Actor | None, user: User, *, active: bool) -> None:
    """Write the change and its trail; without an actor it is the directory's."""
    if not active:
        sessions.end_all(user)
    left_at = timezone.now() if actor is None and not active else None
    User.objects.filter(pk=user.pk).update(is_active=active, left_directory_at=left_at)
    action = "user.activate" if active else "user.deactivate"
    by = {} if actor else {"by": "directory"}
    audit.record(actor, action, target=user, data={"username": user.username, **by})
    signals.send_access_changed(user)


def set_admin(actor: Actor, user: User, *, is_admin: bool) -> None:
    """Give or remove admin rights. If admins need a second factor, a new admin must sign in again with one."""
    with _changing_people(actor, user, one_stays=not is_admin):
        if is_admin and settings.STAFF_NEED_SECOND_FACTOR:
            sessions.end_all(user)
        User.objects.filter(pk=user.pk).update(is_staff=is_admin, staff_by_group=False)
        action = "user.make_admin" if is_admin else "user.unmake_admin"
        audit.record(actor, action, target=user, data={"username": user.username})
        signals.send_access_changed(user)


def delete_person(actor: Actor, user: User) -> None:
    """Delete a person who never launched anything. Raise Conflict for others: deactivate them instead."""
    with _changing_people(actor, user, one_stays=True):
        audit.record(actor, "user.delete", target=user, data={"username": user.username})
        # Receivers end what an inactive person has, before the rows that say so go with the person.
        User.objects.filter(pk=user.pk).update(is_active=False)
        signals.send_access_changed(user)
        try:
            user.delete()
        except ProtectedError:
            raise Conflict(
                "person_has_work",
                _("%(name)s has or had workspaces or jobs.") % {"name": user.username},
                _("Deactivate them instead: this keeps their history."),
            ) from None


@contextmanager
def _changing_people(actor: Actor, user: User, *, one_stays: bool) -> Iterator[None]:
    actor.require_admin()
    with transaction.atomic():
        both = locked(User.objects.filter(pk__in={actor.user.pk, user.pk}))
        if one_stays:
            _require_one_stays({row.pk: row for row in both}[actor.user.pk], user)
        yield


@contextmanager
def _changing_members(actor: Actor, tenant: Tenant) -> Iterator[None]:
    """Allow one change of a tenant's members at a time, and check after the wait that the actor is still an owner: two
    owners cannot remove each other.

    A token needs the scope `workspaces`, because members may run work here.
    """
    with transaction.atomic():
        locked(Tenant.objects.all()).get(pk=tenant.pk)
        require_owner(actor, tenant)
        actor.require(Scope.WORKSPACES)
        yield


def _person(name: str, tenant: Tenant) -> User:
    """Return the active person of this user name, or else of this e-mail address, or a service account of the tenant.
    Raise Invalid if unclear."""
    active = User.objects.filter(Q(service_of=None) | Q(service_of=tenant), is_active=True)
    found = list(active.filter(username=name)) or list(active.filter(email__iexact=name)[:2] if name else [])
    if len(found) == 1:
        return found[0]
    if found:
        text = _("More than one person has this e-mail address.")
        hint = _("Use the user name.")
    else:
        text = _("There is no person with this name.")
        hint = _("Ask for the name they sign in with. They must sign in once first.")
    raise Invalid("unknown_person", text, hint, fields={"username": [f"{text} {hint}"]})


def _require_as_seen(user: User, membership: Membership | None, was: str | None) -> None:
    now = membership.role if membership else ""
    if was is None or was == now:
        return
    if membership is None:
        text = _("%(name)s was removed in the meantime.") % {"name": user.username}
    else:
        text = _("%(name)s is already a member, with the role %(role)s.") % {
            "name": user.username,
            "role": membership.get_role_display(),
        }
    hint = _("Check the list again, then decide.")
    raise Conflict("changed_meanwhile", text, hint, fields={"username": [text]})


def has_other_owner(membership: Membership) -> bool:
    """Return True if another active person owns the membership's tenant. A service account does not count."""
    owners = Membership.objects.filter(
        tenant=membership.tenant_id, role=Role.OWNER, user__is_active=True, user__service_of=None
    )
    return owners.exclude(pk=membership.pk).exists()


def _require_other_owner(tenant: Tenant, membership: Membership) -> None:
    if membership.user.service_of_id is None and not has_other_owner(membership):
        raise Conflict(
            "last_owner",
            _("%(name)s is the only owner of %(tenant)s.")
            % {"name": membership.user.username, "tenant": tenant.name},
            _("Make somebody else an owner first."),
        )


def _require_one_stays(admin: User, user: User) -> None:
    """Refuse admins who remove themselves, and an actor who is no admin any more: two cannot remove each other."""
    if user.pk == admin.pk:
        raise Conflict(
            "yourself",
            _("You cannot remove your own access."),
            _("Ask another admin to do it, so that at least one admin remains."),
        )
    Actor(admin).require(Scope.ADMIN)

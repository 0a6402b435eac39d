"""Roles that come from the provider's groups.

A role that a group gave is marked so, and follows the group at each sign-in. A role given by hand stays as it is.
In the audit trail these changes have no actor.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Any

from django.conf import settings

from accounts import members, signals
from accounts.credentials import sessions
from accounts.locks import locked
from accounts.models import AuditEntry, Membership, Role, Tenant, User
from accounts.sign_on.configuration import ADMIN, ROLES, Grant
from accounts.trail import audit

log = logging.getLogger(__name__)


def groups_in(claims: dict[str, Any], claim: str) -> frozenset[str]:
    """Return the groups that the provider names. A missing claim means none: some providers leave out empty claims.
    The claim's name may be a path, as in realm_access.roles."""
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    if isinstance(found, str):
        return frozenset({found})
    return (
        frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()
    )


def wanted_roles(groups: frozenset[str], grants: Iterable[Grant]) -> dict[str, str]:
    """Return the role per tenant; of several, the strongest."""
    wanted: dict[str, str] = {}
    for grant in grants:
        if grant.tenant and grant.group in groups:
            before = wanted.get(grant.tenant, ROLES[-1])
            wanted[grant.tenant] = min(before, grant.role, key=ROLES.index)
    return wanted


def is_admin(groups: frozenset[str], grants: Iterable[Grant]) -> bool:
    return any(grant.role == ADMIN and grant.group in groups for grant in grants)


def differ(user: User, groups: frozenset[str], grants: tuple[Grant, ...], tenants: Collection[str]) -> bool:
    """Return True if `follow` would change a role, in one of these tenants or as an admin."""
    wanted = wanted_roles(groups, grants)
    roles = {row.tenant.slug: row for row in user.memberships.all()}
    return (
        any(slug in tenants and slug not in roles for slug in wanted)
        or any(row.by_group and row.role != wanted.get(slug) for slug, row in roles.items())
        or (not _is_admin_by_hand(user) and user.is_staff != is_admin(groups, grants))
    )


def loses_all(user: User, groups: frozenset[str], grants: tuple[Grant, ...]) -> bool:
    """Return True if the person has roles from groups, and these groups leave none."""
    has_some = user.staff_by_group or any(row.by_group for row in user.memberships.all())
    return has_some and not wanted_roles(groups, grants) and not is_admin(groups, grants)


def follow(user: User, groups: frozenset[str], grants: tuple[Grant, ...]) -> None:
    """Update the person's roles from their groups, in one transaction, with each change in the trail."""
    wanted = wanted_roles(groups, grants)
    with signals.access_changes_together():
        given = Membership.objects.filter(user=user, by_group=True).values_list("tenant__slug", flat=True)
        slugs = {*wanted, *given}
        # Locked as in members.py, because owners are counted.
        tenants = {tenant.slug: tenant for tenant in locked(Tenant.objects.filter(slug__in=slugs))}
        for slug in sorted(slugs):
            if slug in tenants:
                _follow_in(tenants[slug], user, wanted.get(slug))
            else:
                log.warning("the groups' settings name the tenant %s, which does not exist", slug)
        _follow_as_admin(user, is_admin(groups, grants))


def _follow_in(tenant: Tenant, user: User, wanted: str | None) -> None:
    membership = Membership.objects.filter(tenant=tenant, user=user).first()
    if membership is None:
        if wanted is not None:
            Membership.objects.create(tenant=tenant, user=user, role=wanted, by_group=True)
            _changed(user, tenant, "member.add", role=wanted)
    elif membership.by_group and membership.role != wanted:
        if membership.role == Role.OWNER and not members.has_other_owner(membership):
            _keep_last_owner(user, tenant)
        elif wanted is None:
            membership.delete()
            _changed(user, tenant, "member.remove")
        else:
            membership.role = wanted
            membership.save(update_fields=["role"])
            _changed(user, tenant, "member.change", role=wanted)


def _keep_last_owner(user: User, tenant: Tenant) -> None:
    """Record that the role stays until there is another owner: nobody could repair a tenant without one."""
    log.warning(
        "%s left the group that owns %s, but is its only owner and stays so", user.username, tenant.slug
    )
    audit.record(
        None,
        "member.remove",
        target=user,
        tenant=tenant,
        outcome=AuditEntry.Outcome.REFUSED,
        data={"username": user.username, "code": "last_owner", "by": "groups"},
    )


def _follow_as_admin(user: User, wanted: bool) -> None:
    if _is_admin_by_hand(user):
        return
    changed = user.is_staff != wanted
    if changed and wanted and settings.STAFF_NEED_SECOND_FACTOR:
        sessions.end_all(user)  # signed in without a second factor; the provider's session begins later
        user.refresh_from_db(fields=["sign_outs"])
    user.is_staff = user.staff_by_group = wanted
    user.save(update_fields=["is_staff", "staff_by_group"])
    if not changed:
        return
    action = "user.make_admin" if wanted else "user.unmake_admin"
    audit.record(None, action, target=user, data={"username": user.username, "by": "groups"})
    signals.send_access_changed(user)


def _is_admin_by_hand(user: User) -> bool:
    return user.is_staff and not user.staff_by_group


def _changed(user: User, tenant: Tenant, action: str, **data: str) -> None:
    details = {"username": user.username, "by": "groups", **data}
    audit.record(None, action, target=user, tenant=tenant, data=details)
    signals.send_access_changed(user)

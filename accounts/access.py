"""Access rules: the one place that turns a signed-in person (and perhaps a token's limits) into rights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.errors import NotAllowed, NotThere
from accounts.locks import locked
from accounts.models import APIToken, Membership, Role, Scope, Tenant, User


@dataclass(frozen=True)
class Actor:
    """The acting person, in the browser or through one of their tokens."""

    user: User
    token: APIToken | None = None
    # Row of the session by which they came, if there was one; what it opens ends with it (`sign_in.still`).
    session_row: str = ""

    @property
    def is_admin(self) -> bool:
        """True for staff; by a token only with the scope `admin`: without it, staff have the rights of members."""
        return self.user.is_staff and self.user.is_active and self._has(Scope.ADMIN)

    def _has(self, scope: Scope | str) -> bool:
        return self.token is None or scope in self.token.scopes

    def may(self, scope: Scope | str) -> bool:
        """Return True for a session, or a token that has the scope. The scope `admin` is for staff only."""
        return self.is_admin if scope == Scope.ADMIN else self._has(scope)

    def require(self, scope: Scope | str) -> None:
        if self.may(scope):
            return
        if scope == Scope.ADMIN and not (self.user.is_staff and self.user.is_active):
            raise NotAllowed(
                "admins_only", _("Only admins may do this."), _("Ask an admin of this installation.")
            )
        raise NotAllowed(
            "scope_missing",
            _("This token does not have the scope “%(scope)s”.") % {"scope": scope},
            _("Create a token with that scope, in your profile."),
        )

    def require_whole_person(self) -> None:
        """Refuse a token that is bound to one tenant, where an action reaches beyond one tenant."""
        if self.token is not None and self.token.tenant_id is not None:
            raise NotAllowed(
                "token_bound",
                _("This token is limited to one tenant, but this action affects all your tenants."),
                _("Use a token without a tenant limit, or your profile page."),
            )

    def require_admin(self) -> None:
        """Refuse all but admins, and their tokens without the scope for it or bound to one tenant."""
        self.require(Scope.ADMIN)
        self.require_whole_person()


def visible_tenants(actor: Actor) -> QuerySet[Tenant]:
    tenants = Tenant.objects.all()
    if not actor.is_admin:
        tenants = tenants.filter(id__in=Membership.objects.filter(user=actor.user).values("tenant"))
    if actor.token is not None and actor.token.tenant_id is not None:
        tenants = tenants.filter(id=actor.token.tenant_id)
    return tenants


def sight(actors: Iterable[Actor], tenants: Collection[UUID]) -> Callable[[Actor, UUID], bool]:
    """Return a check of which actor sees which tenant, by the rule of `visible_tenants`, with one query for all."""
    users = {actor.user.pk for actor in actors}
    rows = Membership.objects.filter(user__in=users, tenant__in=tenants)
    members = set(rows.values_list("user_id", "tenant_id"))

    def sees(actor: Actor, tenant_id: UUID) -> bool:
        if actor.token is not None and actor.token.tenant_id not in (None, tenant_id):
            return False
        return actor.is_admin or (actor.user.pk, tenant_id) in members

    return sees


def role_in(actor: Actor, tenant: Tenant, *, hold: bool = False) -> Role | None:
    """The person's role in a tenant; None outside of it. Staff act as owners everywhere.

    `hold`: until the transaction ends, nobody may change or end the membership that gives the role.
    """
    if actor.token is not None and actor.token.tenant_id not in (None, tenant.id):
        return None
    if actor.is_admin:
        return Role.OWNER
    rows = Membership.objects.filter(user=actor.user, tenant=tenant)
    role = (locked(rows) if hold else rows).values_list("role", flat=True).first()
    return Role(role) if role else None


def roles_of(actor: Actor) -> list[tuple[Tenant, Role]]:
    """Tenants that the actor sees, by slug, with the actor's role. One query for any number."""
    tenants = visible_tenants(actor)
    if actor.is_admin:
        return [(tenant, Role.OWNER) for tenant in tenants]
    rows = Membership.objects.filter(user=actor.user, tenant__in=tenants).select_related("tenant")
    return [(row.tenant, Role(row.role)) for row in rows.order_by("tenant__slug")]


def owned_tenants(actor: Actor) -> QuerySet[Tenant]:
    """Tenants in which the actor decides about others: reads the trail, manages members."""
    tenants = visible_tenants(actor)
    if actor.is_admin:
        return tenants
    owned = Membership.objects.filter(user=actor.user, role=Role.OWNER)
    return tenants.filter(id__in=owned.values("tenant"))


def tenant_by_slug(actor: Actor, slug: str) -> Tenant:
    # PostgreSQL refuses a NUL in a query; no slug contains one.
    tenant = visible_tenants(actor).filter(slug=slug).first() if "\0" not in slug else None
    if tenant is None:
        raise not_there()
    return tenant


def require_owner(actor: Actor, tenant: Tenant) -> None:
    role = role_in(actor, tenant)
    if role is None:
        raise not_there()
    if role != Role.OWNER:
        raise NotAllowed(
            "owners_only",
            _("Only the owners of %(tenant)s may do this.") % {"tenant": tenant.name},
            _("Ask an owner of the tenant."),
        )


def not_there() -> NotThere:
    """The one answer for what does not exist and for what the person may not see."""
    return NotThere(
        "not_found",
        _("There is nothing here that you have access to."),
        _("Check the address, or ask an owner of the tenant to add you."),
    )

"""The tenant that a person looks at: chosen in the frame of every page, kept in the session.

The choice narrows what pages show and never widens it: `access.py` decides about rights, whatever is chosen here.
"""

from __future__ import annotations

from django.http import HttpRequest

from accounts.access import roles_of, tenant_by_slug
from accounts.models import Role, Tenant
from accounts.rest.actors import actor_of

SESSION_KEY = "tenant"


def current_tenant(request: HttpRequest) -> Tenant | None:
    """The tenant that the signed-in person chose; None means all of theirs. A tenant they have left does not count."""
    slug = request.session.get(SESSION_KEY)
    return next((tenant for tenant in tenants_to_choose(request) if tenant.slug == slug), None)


def tenants_to_choose(request: HttpRequest) -> list[Tenant]:
    """Tenants that the person may see, by name."""
    return sorted(
        (tenant for tenant, _role in roles(request)), key=lambda one: (one.name.casefold(), one.slug)
    )


def owns_any(request: HttpRequest) -> bool:
    """Return True if the person is an owner anywhere, or an admin."""
    return any(role == Role.OWNER for _tenant, role in roles(request))


def roles(request: HttpRequest) -> list[tuple[Tenant, Role]]:
    """Tenants that the person sees, by slug, with their role there; read once per request."""
    known = vars(request)
    if "roles_in_tenants" not in known:
        known["roles_in_tenants"] = roles_of(actor_of(request))
    found: list[tuple[Tenant, Role]] = known["roles_in_tenants"]
    return found


def choose(request: HttpRequest, slug: str) -> None:
    """Keep the choice in the session; an empty slug means all tenants. Raise NotThere for one they may not see."""
    if slug:
        request.session[SESSION_KEY] = tenant_by_slug(actor_of(request), slug).slug
    else:
        request.session.pop(SESSION_KEY, None)

"""Which of their tenants a person looks at: chosen in the frame of every page, kept in the session.

It narrows what pages show and never widens it: who may what is asked of `access.py`, whatever is chosen here.
"""

from __future__ import annotations

from django.http import HttpRequest

from accounts.access import roles_of, tenant_by_slug
from accounts.models import Role, Tenant
from accounts.rest.actors import actor_of

SESSION_KEY = "tenant"


def current_tenant(request: HttpRequest) -> Tenant | None:
    """The tenant that the signed-in person chose; None is all of theirs. One they have left counts for nothing."""
    slug = request.session.get(SESSION_KEY)
    return next((tenant for tenant in tenants_to_choose(request) if tenant.slug == slug), None)


def tenants_to_choose(request: HttpRequest) -> list[Tenant]:
    """All that the person may see, by name."""
    return sorted(
        (tenant for tenant, _role in roles(request)), key=lambda one: (one.name.casefold(), one.slug)
    )


def owns_any(request: HttpRequest) -> bool:
    """Whether the person decides about others anywhere."""
    return any(role == Role.OWNER for _tenant, role in roles(request))


def roles(request: HttpRequest) -> list[tuple[Tenant, Role]]:
    """Every tenant that the person sees, by its slug, with their role there; read once per request."""
    known = vars(request)
    if "roles_in_tenants" not in known:
        known["roles_in_tenants"] = roles_of(actor_of(request))
    found: list[tuple[Tenant, Role]] = known["roles_in_tenants"]
    return found


def choose(request: HttpRequest, slug: str) -> None:
    """From now on, in this session. An empty slug: all of theirs. One they may not see does not exist."""
    if slug:
        request.session[SESSION_KEY] = tenant_by_slug(actor_of(request), slug).slug
    else:
        request.session.pop(SESSION_KEY, None)

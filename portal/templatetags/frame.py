"""Template tags for the frame of every page."""

from __future__ import annotations

from typing import Any

import structlog
from django import template

from accounts.announcements import showing
from accounts.tenancy import current_tenant, owns_any, tenants_to_choose
from clusters.isolation.deciding import any_without
from portal import guide
from portal.first_run.steps import is_complete

register = template.Library()


@register.inclusion_tag("components/tenant_switch.html", takes_context=True)
def tenant_switch(context: dict[str, Any]) -> dict[str, Any]:
    """The tenant that the pages show, and the person's other tenants to choose from."""
    request = context["request"]
    return {
        "current": current_tenant(request),
        "tenants": tenants_to_choose(request),
        "request": request,
        "csrf_token": context.get("csrf_token"),
    }


@register.simple_tag(takes_context=True)
def may_read_trail(context: dict[str, Any]) -> bool:
    """Return True for owners, who read their tenants' audit trail, and admins, who read all of it."""
    return owns_any(context["request"])


@register.inclusion_tag("components/without_isolation.html")
def without_isolation() -> dict[str, bool]:
    """The line at the foot of every page while a cluster runs without isolation, but for error pages."""
    return {"is_so": any_without()}


@register.inclusion_tag("components/announcements.html")
def announcements() -> dict[str, list[tuple[str, str, str]]]:
    """The announcements of this moment, above every page but those of errors."""
    rows = showing.shown()[: showing.MOST_SHOWN]
    return {"lines": [(row.level, row.text, showing.about_launches(row)) for row in rows]}


@register.simple_tag(takes_context=True)
def needs_first_run(context: dict[str, Any]) -> bool:
    """Return True for an admin of an installation in which no workspace ever became ready."""
    return context["request"].user.is_staff and not is_complete()


@register.simple_tag(takes_context=True)
def guide_here(context: dict[str, Any]) -> str:
    """Address of the part of the guides that belongs to the page."""
    return guide.address_of(context.get("section", ""))


@register.simple_tag
def request_id() -> str:
    """Id of this request in the logs, to quote when asking for help."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))

"""What the frame of every page shows besides the page."""

from __future__ import annotations

from typing import Any

import structlog
from django import template

from accounts.tenancy import current_tenant, owns_any, tenants_to_choose

register = template.Library()


@register.inclusion_tag("components/tenant_switch.html", takes_context=True)
def tenant_switch(context: dict[str, Any]) -> dict[str, Any]:
    """Which of the person's tenants the pages show, and the others to choose from."""
    request = context["request"]
    return {
        "current": current_tenant(request),
        "tenants": tenants_to_choose(request),
        "request": request,
        "csrf_token": context.get("csrf_token"),
    }


@register.simple_tag(takes_context=True)
def may_read_trail(context: dict[str, Any]) -> bool:
    """Owners read what happened in their tenants, admins all of it."""
    return owns_any(context["request"])


@register.simple_tag
def request_id() -> str:
    """By which the log knows this request: to quote when asking for help."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))

"""Template tag for the profile: the person's ways to sign in."""

from __future__ import annotations

from typing import Any

from django import template
from django.conf import settings

from accounts.sign_on import admission, second_factor

register = template.Library()


@register.inclusion_tag("accounts/profile_sign_on.html", takes_context=True)
def sign_on(context: dict[str, Any]) -> dict[str, Any]:
    user = context["request"].user
    return {
        "csrf_token": context.get("csrf_token"),
        "has_password": user.has_usable_password(),
        "knows_password": admission.knows_password(user),
        "second_factor": second_factor.is_on(user),
        "provider": settings.OIDC,
        "directory": settings.LDAP,
        "in_directory": settings.LDAP is not None and admission.is_connected(user, settings.LDAP),
        "connected": settings.OIDC is not None and admission.is_connected(user, settings.OIDC),
    }

"""Template tag for the frame of every page."""

from __future__ import annotations

from typing import Any

from django import template

from accounts.models import User
from accounts.notices import inbox

register = template.Library()


@register.simple_tag(takes_context=True)
def unread_notices(context: dict[str, Any]) -> int:
    """Number of notices that the request's person has not read."""
    user = getattr(context.get("request"), "user", None)
    return inbox.unread(user) if isinstance(user, User) else 0

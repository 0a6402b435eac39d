"""The acting person of a request, for use cases: the same Actor for a session and for a token."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.request import Request

from accounts.access import Actor
from accounts.credentials.sessions import session_row
from accounts.models import APIToken, User


def actor_of(request: Request | HttpRequest) -> Actor:
    """Return the signed-in person of a request; only for views that require one."""
    assert isinstance(request.user, User)
    token = getattr(request, "auth", None)
    if isinstance(token, APIToken):
        return Actor(request.user, token)
    return Actor(request.user, session_row=session_row(request.session))

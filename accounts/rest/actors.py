"""Who asks, for use cases: the same Actor whether they came by session or by token."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.request import Request

from accounts.access import Actor
from accounts.models import APIToken, User


def actor_of(request: Request | HttpRequest) -> Actor:
    """The signed-in person behind a request; only for views that let nobody else in."""
    assert isinstance(request.user, User)
    token = getattr(request, "auth", None)
    return Actor(request.user, token if isinstance(token, APIToken) else None)

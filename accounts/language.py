"""The language that a person chose, carried as a cookie so that no request has to look it up."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse

from accounts.models import User


def with_language(response: HttpResponse, user: User) -> HttpResponse:
    if user.language:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            user.language,
            max_age=365 * 24 * 3600,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response

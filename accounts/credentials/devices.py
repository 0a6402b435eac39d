"""Browsers in which a person signed in before, known by a signed cookie.

The cookie gives no access. It only keeps a browser's attempts apart from those of strangers who guess at the same name
(accounts/credentials/guessing.py).
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from accounts.credentials.guessing import digest
from accounts.models import User

COOKIE = f"{settings.COOKIE_PREFIX}berth_device"
SALT = "accounts.credentials.devices"
LIFETIME = timedelta(days=180)
MOST_NAMES = 10  # of five people who share a browser: the user name, and the name in the directory


def known(request: HttpRequest | None, username: str) -> str | None:
    """Return the id of the request's browser if this name signed in there before."""
    device = _device(request)
    return str(device["id"]) if digest(username) in device["names"] else None


def remember(request: HttpRequest, response: HttpResponse, user: User, typed: str) -> None:
    """Note in the browser that the person has signed in. `typed`: the name that they came in with, which in the
    directory may be another one than here; empty if none."""
    device = _device(request)
    mine = list(dict.fromkeys(digest(name) for name in (user.username, typed) if name))
    others = [name for name in device["names"] if name not in mine]
    response.set_cookie(
        COOKIE,
        signing.dumps({"id": device["id"], "names": [*mine, *others][:MOST_NAMES]}, salt=SALT),
        max_age=LIFETIME,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _device(request: HttpRequest | None) -> dict[str, Any]:
    """Return what the browser's cookie says; a new device without names if it has none of ours."""
    cookie = request.COOKIES.get(COOKIE, "") if request else ""
    try:
        device: dict[str, Any] = signing.loads(cookie, salt=SALT, max_age=LIFETIME)
    except signing.BadSignature:
        return {"id": secrets.token_urlsafe(16), "names": []}
    return device

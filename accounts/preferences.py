"""Language, time zone and theme: what a person chose in their profile, on every page that they open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from accounts.models import Theme, User, time_zones

THEME_COOKIE = "berth_theme"  # for pages without a person
YEAR_SECONDS = 365 * 24 * 3600
TIME_ZONE_COOKIE = "berth_time_zone"  # the browser's own, written by static/js/time.js


@contextmanager
def applied(request: HttpRequest, user: User | None) -> Iterator[None]:
    """The person's language and time zone; where they chose none, what their browser says."""
    language, place = (user.language, user.time_zone) if user else ("", "")
    if language not in dict(settings.LANGUAGES):
        language = translation.get_language()
    zone = _zone(place) or _zone(request.COOKIES.get(TIME_ZONE_COOKIE, ""))
    with translation.override(language), timezone.override(zone):
        yield


def theme_of(request: HttpRequest) -> str:
    """light, dark, or "" for the system's. Where somebody is signed in, what they chose; else the browser's last."""
    user = getattr(request, "user", None)
    chosen = user.theme if isinstance(user, User) else request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in Theme.values else ""


def remembered(response: HttpResponse, user: User) -> HttpResponse:
    """Also for the pages that this browser sees before somebody signs in."""
    for cookie, chosen in ((settings.LANGUAGE_COOKIE_NAME, user.language), (THEME_COOKIE, user.theme)):
        if not chosen:
            response.delete_cookie(cookie, samesite="Lax")
            continue
        response.set_cookie(
            cookie, chosen, max_age=YEAR_SECONDS, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
        )
    return response


def choose_theme(user: User, theme: str) -> None:
    """What is no theme is the system's."""
    user.theme = theme if theme in Theme.values else ""
    user.save(update_fields=["theme"])


def _zone(name: str) -> ZoneInfo | None:
    return ZoneInfo(name) if name in time_zones() else None

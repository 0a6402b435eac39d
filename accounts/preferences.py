"""Language, time zone and theme that a person chose in their profile, for every page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from accounts.models import Theme, User, time_zones

THEME_COOKIE = "berth_theme"  # for pages before sign-in
YEAR_SECONDS = 365 * 24 * 3600
TIME_ZONE_COOKIE = "berth_time_zone"  # the browser's own, written by static/js/time.js


@contextmanager
def applied(request: HttpRequest, user: User | None) -> Iterator[None]:
    """Use the person's language and time zone, or the browser's where they chose none."""
    language, place = (user.language, user.time_zone) if user else ("", "")
    if language not in dict(settings.LANGUAGES):
        language = translation.get_language()
    zone = _zone(place) or _zone(request.COOKIES.get(TIME_ZONE_COOKIE, ""))
    with translation.override(language), timezone.override(zone):
        yield


def theme_of(request: HttpRequest) -> str:
    """Return light, dark, or "" for the system's: the signed-in person's choice, else the browser's last."""
    user = getattr(request, "user", None)
    chosen = user.theme if isinstance(user, User) else request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in Theme.values else ""


def remembered(response: HttpResponse, user: User) -> HttpResponse:
    """Keep the choices in cookies too, for the pages that this browser shows before sign-in."""
    for cookie, chosen in ((settings.LANGUAGE_COOKIE_NAME, user.language), (THEME_COOKIE, user.theme)):
        if not chosen:
            response.delete_cookie(cookie, samesite="Lax")
            continue
        response.set_cookie(
            cookie, chosen, max_age=YEAR_SECONDS, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
        )
    return response


def choose(user: User, **chosen: str) -> None:
    """Save language, time zone or theme, which are checked already. "" means the browser's or the system's.

    Other fields (active, admin, the password) may have changed since the row was read, so they are not saved.
    """
    for name, value in chosen.items():
        setattr(user, name, value)
    user.save(update_fields=list(chosen))


def choose_theme(user: User, theme: str) -> None:
    """Save the theme; an unknown one means the system's."""
    choose(user, theme=theme if theme in Theme.values else "")


def _zone(name: str) -> ZoneInfo | None:
    return ZoneInfo(name) if name in time_zones() else None

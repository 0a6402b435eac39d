from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import OperationalError
from django.db.models.signals import pre_save
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject

from accounts.models import User
from portal.middleware import PersonalPreferences
from portal.urls import urlpatterns as real
from tests.accounts.people import People
from tests.shared.clients import browser

MOMENT = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


def told(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{timezone.localtime(MOMENT):%H:%M} {translation.get_language()}")


urlpatterns = [path("told/", told), *real]


@pytest.fixture
def asked(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.accounts.test_preferences"


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("chosen", "cookie", "said"),
    [
        ("", "", "12:00"),
        ("", "Europe/Berlin", "14:00"),
        ("Asia/Seoul", "Europe/Berlin", "21:00"),
        ("", "../../etc/passwd", "12:00"),
        ("Gone/Away", "", "12:00"),
    ],
)
def test_times_are_in_the_persons_or_the_browsers_zone(
    people: People, chosen: str, cookie: str, said: str
) -> None:
    User.objects.filter(username="bob").update(time_zone=chosen)
    client = browser(people.bob)
    client.cookies["berth_time_zone"] = cookie
    assert client.get("/told/").text == f"{said} en"
    assert timezone.get_current_timezone_name() == "UTC"


@pytest.mark.usefixtures("asked")
def test_a_chosen_language_wins_over_the_browser_s(people: People) -> None:
    User.objects.filter(username="bob").update(language="ko")
    answer = browser(people.bob).get("/told/", headers={"Accept-Language": "zh-hans"})
    assert answer.text == "12:00 ko"
    assert answer["Content-Language"] == "ko"
    assert browser(people.alice).get("/told/").text == "12:00 en"
    assert translation.get_language() == "en"


@pytest.mark.parametrize("name", ["Europe/Nowhere", "Etc/GMT-1", "/etc/localtime", "CET"])
def test_only_places_and_utc_are_time_zones(people: People, name: str) -> None:
    user = people.bob.user
    user.time_zone = name
    with pytest.raises(ValidationError) as error:
        user.full_clean()
    assert list(error.value.message_dict) == ["time_zone"]


def test_the_theme_of_a_page_is_the_person_s_or_before_the_sign_in_the_browser_s(people: People) -> None:
    client = Client()
    client.cookies["berth_theme"] = "dark"
    assert 'data-theme="dark"' in client.get("/sign-in/").text
    client.cookies["berth_theme"] = "<b>"
    assert "data-theme" not in client.get("/sign-in/").text
    User.objects.filter(username="bob").update(theme="light")
    client = browser(people.bob)
    client.cookies["berth_theme"] = "dark"
    assert 'data-theme="light"' in client.get("/profile/").text


def test_a_database_that_is_away_is_asked_once_and_the_view_says_so(rf: Any) -> None:
    asked = []

    def look_up() -> User:
        asked.append(1)
        raise OperationalError("away")

    def view(request: HttpRequest) -> HttpResponse:
        with pytest.raises(OperationalError):
            _ = request.user.is_authenticated
        return HttpResponse("said")

    request = rf.get("/")
    request.user = SimpleLazyObject(look_up)
    assert PersonalPreferences(view)(request).status_code == 200
    assert len(asked) == 1


LOST: list[dict[str, Any]] = [{"is_active": False}, {"is_staff": False}, {"sign_outs": 7}, {"password": "!"}]


@pytest.mark.parametrize("lost", LOST)
def test_saving_preferences_does_not_restore_lost_access(people: People, lost: dict[str, Any]) -> None:
    client = browser(people.admin)

    def take(instance: User, **_: Any) -> None:
        User.objects.filter(pk=instance.pk).update(**lost)

    pre_save.connect(take, sender=User)
    try:
        client.post("/profile/preferences/", {"theme": "dark"})
    finally:
        pre_save.disconnect(take, sender=User)
    kept = User.objects.values("theme", *lost).get(username="admin")
    assert kept == {"theme": "dark"} | lost

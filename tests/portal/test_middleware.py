import os
import subprocess
import sys
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from accounts.access import not_there
from accounts.errors import Conflict, NotSignedIn
from accounts.trail import audit
from portal.middleware import page_above
from portal.urls import urlpatterns as real

FAILURES = {
    "missing": not_there(),
    "signed-out": NotSignedIn("not_signed_in", "You are not signed in."),
    "conflict": Conflict("taken", "This name is taken.", "Choose another one."),
    "away": OperationalError("connection failed: password=hunter2"),
}


def fail(request: HttpRequest, how: str) -> HttpResponse:
    raise FAILURES[how]


def where(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(audit.client_address.get()))


urlpatterns = [path("fail/<slug:how>/", fail), path("where/", where), *real]


@pytest.fixture(autouse=True)
def urls(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.portal.test_middleware"


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("missing", 404, "There is nothing here that you have access to."),
        ("conflict", 409, "Choose another one."),
        ("away", 503, "The database cannot handle this request right now."),
    ],
)
def test_a_refusal_is_a_page_that_says_what_happened(db: None, how: str, status: int, words: str) -> None:
    answer = Client().get(f"/fail/{how}/")
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert "hunter2" not in answer.content.decode()


def test_the_address_of_a_form_leads_a_person_to_the_page_above_it_and_refuses_a_script() -> None:
    assert page_above("/tenants/demo/members/bob/") == "/tenants/demo/members/"
    assert page_above("/workspaces/bulk/") == "/"
    assert Client().get("/sign-out/", headers={"Accept": "text/html,*/*;q=0.8"})["Location"] == "/"
    assert Client().get("/sign-out/", headers={"Accept": "*/*"}).status_code == 405


def test_who_is_not_signed_in_is_led_there_and_back() -> None:
    assert Client().get("/fail/signed-out/?a=1")["Location"] == "/sign-in/?next=/fail/signed-out/%3Fa%3D1"


@pytest.mark.parametrize(
    ("remote", "seen"), [("192.0.2.7", "192.0.2.7"), ("::1", "::1"), ("", "None"), ("unix:", "None")]
)
def test_use_cases_know_where_the_request_comes_from(remote: str, seen: str) -> None:
    assert Client(REMOTE_ADDR=remote).get("/where/").content.decode() == seen


def test_every_answer_names_its_request(client: Client) -> None:
    first, second = (client.get("/where/")["X-Request-ID"] for _time in range(2))
    assert first != second


def test_nobody_keeps_what_the_api_answers(db: None) -> None:
    for path_ in ("/api/v1/me/", "/api/v1/nothing/", "/api/schema/"):
        assert Client().get(path_)["Cache-Control"] == "no-store"


def test_in_production_no_other_host_can_set_our_cookies() -> None:
    told = "from portal import settings as s; print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME)"
    production = {name: value for name, value in os.environ.items() if name != "BERTH_TRIAL"}
    production |= {"BERTH_TRIAL": "0"}
    found = subprocess.run(
        [sys.executable, "-c", told], env=production, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["__Host-berth_session", "__Host-berth_csrf"]

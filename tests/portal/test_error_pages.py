"""Error pages: each says what happened and what to do, also without a database, which no test here needs."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError, ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from psycopg.errors import UndefinedColumn, UndefinedFunction

from portal.urls import handler400, handler404, handler500  # noqa: F401
from portal.urls import urlpatterns as real


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


FAILURES = {
    "unreadable": SuspiciousOperation("x"),
    "forbidden": PermissionDenied("x"),
    "broken": ZeroDivisionError("secret=hunter2"),
    "faulty-query": caused(ProgrammingError("x"), UndefinedFunction("x")),
    "away": OperationalError("connection failed: password=hunter2"),
    "old-tables": caused(ProgrammingError("x"), UndefinedColumn("x")),
}


def fail(request: HttpRequest, how: str) -> HttpResponse:
    raise FAILURES[how]


urlpatterns = [path("fail/<slug:how>/", fail), path("api/fail/<slug:how>/", fail), *real]


@pytest.fixture(autouse=True)
def urls(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.portal.test_error_pages"


def ask(path: str, method: str = "get") -> HttpResponse:
    answer: HttpResponse = getattr(Client(raise_request_exception=False), method)(path)
    return answer


@pytest.mark.parametrize(
    ("path", "status", "happened", "do"),
    [
        ("/fail/unreadable/", 400, "This request cannot be read", "reload the page"),
        ("/fail/forbidden/", 403, "You are not allowed to do this", "Ask an owner"),
        ("/fail/broken/", 500, "Something went wrong", "tell an admin"),
        ("/fail/faulty-query/", 500, "Something went wrong", "tell an admin"),
        ("/fail/away/", 503, "The database cannot handle this request right now.", "reloads automatically"),
        ("/fail/old-tables/", 503, "Berth is being updated.", "reloads automatically"),
    ],
)
def test_an_error_says_what_happened_what_to_do_and_which_request_it_was(
    path: str, status: int, happened: str, do: str
) -> None:
    answer = ask(path)
    page = answer.content.decode()
    assert answer.status_code == status
    assert happened in page
    assert do in page
    assert answer["X-Request-ID"] in page
    assert "hunter2" not in page


def test_what_is_not_there_has_no_number_of_its_own() -> None:
    answer = ask("/nowhere/")
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()
    assert answer["X-Request-ID"] not in answer.content.decode()


@pytest.mark.parametrize(("how", "status"), [("away", 503), ("old-tables", 503), ("broken", 500)])
def test_a_script_gets_json(how: str, status: int) -> None:
    answer = ask(f"/api/fail/{how}/")
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")


def test_a_script_that_asks_at_another_name_is_told_so() -> None:
    answer = Client().post("/api/v1/agent/samples/", headers={"Host": "10.251.0.1:8224"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "wrong_host")
    assert "BERTH_ALLOWED_HOSTS" in answer.json()["error"]["hint"]


def test_who_comes_back_soon_is_told_when() -> None:
    assert int(ask("/fail/away/")["Retry-After"]) > 0


def test_a_form_that_could_not_be_sent_is_not_loaded_anew() -> None:
    page = ask("/fail/away/", "post").content.decode()
    assert "What you typed is still in the form" in page
    assert "away.js" not in page


def test_a_page_that_was_too_old_says_so() -> None:
    answer = Client(enforce_csrf_checks=True).post("/sign-in/", {})
    assert answer.status_code == 403
    assert "This page was out of date" in answer.content.decode()

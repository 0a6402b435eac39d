"""Hostile inputs about jobs: the API refuses each in words and writes nothing; pages answer to anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from accounts.credentials import tokens
from accounts.models import Scope, User
from tests.cast import make_cast
from tests.portal.hostile import everything, job, of, raw
from tests.shared.job_rows import make_job
from tests.shared.workspace_rows import make_workspace
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SWEEPS: list[Any] = [
    [], 7, "lr = 1", {"parallelism": 2}, {"parameters": {}}, {"parameters": {"lr": []}}, {"parameters": {"a b": [1]}},
    {"parameters": {"lr": [None]}}, {"parameters": {"lr": [[1]]}}, {"parameters": {"lr": ["a\x00b"]}},
    {"parameters": {"lr": [1], "LR": [2]}}, {"parameters": {"lr": list(range(1001))}}, {"points": []},
    {"points": [{}]}, {"points": [7]}, {"points": [{"lr": 1}, {"seed": 1}]}, {"points": [{"lr": {}}]},
    {"points": {"lr": 1}}, {"points": [{"lr": 1}] * 1001}, {"points": [{"lr": 1}], "parameters": {"lr": [1]}},
    {"points": [{"lr": 1}], "parallelism": 0}, {"parameters": {f"p{n}": [1, 2] for n in range(12)}},
    {"points": [{"a" * 64: 1}]}, {"points": [{"lr": 1}], "surprise": 1},
]  # fmt: skip
PROGRAMS: list[dict[str, Any]] = [
    {"command": []}, {"command": "true"}, {"command": [[]]}, {"command": ["a\x00"]}, {"command": ["x"] * 2000},
    {"script": "true"}, {"notebook": "a.ipynb"}, {"command": [], "notebook": "a.py"}, {"command": [], "notebook": []},
    {"command": [], "notebook": "a\x00.ipynb"}, {"command": [], "notebook": "a" * 2000 + ".ipynb"},
    {"command": [], "script": "a\x00"}, {"command": [], "script": ["true"]}, {"completions": 0}, {"completions": 10**9},
    {"parallelism": -1}, {"retries": -1}, {"retries": 10**9}, {"retries": "many"}, {"final_exit_codes": [0]},
    {"final_exit_codes": ["x"]}, {"final_exit_codes": 7}, {"ttl_hours": 0}, {"ttl_hours": 10**12}, {"surprise": 1},
]  # fmt: skip
HOSTILE: list[tuple[str, str, Any]] = [
    *(job(sweep=sweep) for sweep in SWEEPS),
    *(job(**program) for program in PROGRAMS),
    *(("POST", "workspaces/{id}/job/", {"command": ["true"]} | program) for program in PROGRAMS),
    *(("POST", "workspaces/{id}/job/", body) for body in of(
        [], "x", 7, {}, {"command": ["true"], "tenant": "second"}, {"command": ["true"], "env": {"PATH": "x"}},
        {"command": ["true"], "name": "-"}, {"command": ["true"], "priority": 100},
    )),
    *(("POST", "jobs/{job}/stop-rest/", body) for body in of(
        [], "x", {"keep": "all"}, {"keep": [-1]}, {"keep": ["x"]}, {"keep": [10**9]}, {"keep": {}}, {"sure": 1},
    )),
    *(("GET", f"jobs/{{job}}/parts/?sort={sort}", None) for sort in ("", "owner", "metrics.", "-", "%00", "a" * 200)),
    *(("GET", f"jobs/?{query}", None) for query in ("limit=0", "cursor=zzz", "phase=flying", "search=%00")),
    ("GET", "jobs/{job}/parts/?format=xml", None),
]  # fmt: skip
FORMS: list[dict[str, str]] = [
    {"name": "\x00"}, {"program": "x"}, {"command": "'"}, {"command": "a\x00b"},
    {"program": "script", "script": "\x00"}, {"sweep": "a\x00 = 1"}, {"sweep": "= 1"}, {"sweep": "lr = nan, inf"},
    {"sweep": ","}, {"completions": "1e9"}, {"final_exit_codes": "\u0663"}, {"final_exit_codes": "9" * 400},
    {"retries": "\uff19"}, {"ttl_hours": "x" * 5000}, {"flavor": "*", "gpus": "NaN"}, {"volumes": "x"},
    {"connections": "x"}, {"once": "x"}, {"tenant": "second"}, {"env": "=\n=", "secret_env": "\x00"},
    {"max_runtime_minutes": "-1"}, {"again": "x"}, {"workspace": "\x00"}, {"env": "\x00"},
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, str]]:
    """Secret of a script of alice's, and ids of a workspace and a sweep of hers."""
    with shared_rows(django_db_blocker):
        cast = make_cast()
        _token, secret = tokens.issue(cast.alice.user, "test", [Scope.READ, Scope.JOBS], None, 1)
        sweep = make_job(cast, cast.alice, sweep={"lr": [1, 2]})
        yield {"secret": secret, "id": str(make_workspace(cast, cast.alice).pk), "job": str(sweep.pk)}


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_each_is_refused_in_words(scene: dict[str, str], number: int) -> None:
    method, path, body = HOSTILE[number]
    before = everything()
    client = Client(headers={"Authorization": f"Bearer {scene['secret']}"})
    answer = client.generic(method, f"/api/v1/{path.format(**scene)}", raw(body), "application/json")
    assert 400 <= answer.status_code < 500, (HOSTILE[number], answer.content[:500])
    error = answer.json()["error"]
    assert error["code"]
    assert error["message"]
    assert error["hint"]
    assert everything() == before


@pytest.fixture
def browser(scene: dict[str, str]) -> Client:
    client = Client()
    client.force_login(User.objects.get(username="alice"))
    return client


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_the_forms_page_answers_to_anything(browser: Client, number: int) -> None:
    filled = {"tenant": "demo", "name": "train", "image": "jupyter", "flavor": "a100-1", "program": "command"}
    for path in ("/jobs/new/", "/jobs/new/answer/"):
        sent = filled | {"command": "true", "retries": "1", "look": "1"} | FORMS[number]
        assert browser.post(path, sent).status_code in (200, 404)
    assert browser.get("/jobs/new/", FORMS[number]).status_code == 200


@pytest.mark.parametrize(
    "query", ["sort=x", "phase=x", "owner=%00", "search=%00", "cursor=%00", "limit=x", "show=%00", "page=x"]
)
def test_lists_answer_to_anything(browser: Client, scene: dict[str, str], query: str) -> None:
    for path in ("/jobs/", f"/jobs/{scene['job']}/parts/"):
        assert browser.get(f"{path}?{query}").status_code in (200, 302, 422)

"""The OpenAPI schema is built once per process and language, whoever asks for it and however often."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from portal import schema, views
from tests.cast import make_cast
from tests.shared.clients import browser
from tests.shared.concurrency import at_once


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Builds since the test began, one number for each."""
    caches = (schema._built, schema._rendered, views.operations)
    counted: list[int] = []
    build: Any = SchemaGenerator.get_schema

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        counted.append(1)
        return build(self, *args, **kwargs)

    for each in caches:
        each.cache_clear()
    monkeypatch.setattr(SchemaGenerator, "get_schema", counting)
    yield counted
    for each in caches:
        each.cache_clear()


@pytest.mark.django_db
def test_it_is_built_once_per_language_and_not_per_request_format_or_page(builds: list[int]) -> None:
    client = Client()
    for _ in range(3):
        assert client.get("/api/schema/?format=json").json()["info"]["title"] == "Berth"
    assert client.get("/api/schema/")["Content-Type"].startswith("application/vnd.oai.openapi;")
    assert client.get("/api/schema/?lang=xx&version=7&format=json").status_code == 200
    assert browser(make_cast().alice).get("/api/docs/").status_code == 200
    assert len(builds) == 1
    for _ in range(2):
        assert client.get("/api/schema/?lang=ko&format=json")["Content-Language"] == "ko"
    assert (
        client.get("/api/schema/?format=json", headers={"Accept-Language": "ko"})["Content-Language"] == "ko"
    )
    assert len(builds) == 2


@pytest.mark.django_db
def test_a_client_that_has_it_does_not_get_it_again() -> None:
    client = Client()
    first = client.get("/api/schema/?format=json")
    again = client.get("/api/schema/?format=json", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert client.get("/api/schema/", headers={"If-None-Match": first["ETag"]}).status_code == 200
    assert {"Accept", "Accept-Language"} <= {name.strip() for name in first["Vary"].split(",")}
    assert json.loads(first.content)["paths"]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_wait_for_one_build(builds: list[int]) -> None:
    answers = at_once(lambda _number: Client().get("/api/schema/?format=json").content, 4)
    assert len(set(answers)) == 1
    assert len(builds) == 1

"""One browser and one web process for the tests of a module. What needs Django is imported once it is set up."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from pytest_django import DjangoDbBlocker


@pytest.fixture(scope="session", autouse=True)
def emptied_beside_a_web_process() -> Iterator[None]:
    """A web process may still answer a page that just closed when the tables are emptied: the two can deadlock."""
    from django.db import OperationalError
    from django.db.backends.postgresql.operations import DatabaseOperations

    empty = DatabaseOperations.execute_sql_flush

    def again(self: DatabaseOperations, sql_list: list[str]) -> None:
        for _ in range(4):
            try:
                return empty(self, sql_list)
            except OperationalError as error:
                if "deadlock" not in str(error):
                    raise
        return empty(self, sql_list)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", again)
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.e2e.browsing import chromium

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # playwright's loop runs in this thread
    with sync_playwright() as playwright, chromium(playwright) as browser:
        yield browser
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def address(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    from tests.e2e.browsing import web_process

    with django_db_blocker.unblock(), web_process(tmp_path_factory.mktemp("static")) as address:
        yield address

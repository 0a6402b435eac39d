"""Browser and web process shared by the tests of a module. Imports that need Django run once it is set up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, sync_playwright
from pytest_django import DjangoDbBlocker

if TYPE_CHECKING:
    from tests.cast import Cast


@pytest.fixture
def cast() -> Cast:
    from tests.cast import make_cast

    return make_cast()


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

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Django is not set up yet when this file is read
    from pytest_django import Settings

    from tests.accounts.people import People


@pytest.fixture
def people(request: pytest.FixtureRequest) -> People:
    from tests.accounts.people import make_people

    marker = request.node.get_closest_marker("django_db")
    with_commits = bool(marker and marker.kwargs.get("transaction"))
    request.getfixturevalue("transactional_db" if with_commits else "db")
    return make_people()


@pytest.fixture(autouse=True)
def urls(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.accounts.urls"

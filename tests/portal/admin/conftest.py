from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from tests.shared.cast_fixtures import cast  # noqa: F401

if TYPE_CHECKING:  # a conftest is read before Django is set up
    from tests.cast import Cast


@pytest.fixture
def admin(cast: Cast) -> Client:  # noqa: F811
    from tests.shared.clients import browser

    return browser(cast.admin)

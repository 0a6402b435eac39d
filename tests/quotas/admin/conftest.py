from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Django has no settings yet when this file is loaded
    from django.test import Client

    from tests.shared.stage import Stage


@pytest.fixture
def admin(stage: Stage) -> Client:
    from tests.shared.clients import browser

    return browser(stage.cast.admin)

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client

    from tests.cast import Cast


@pytest.fixture
def bob(cast: Cast, client: Client) -> Client:
    client.force_login(cast.bob.user)
    return client

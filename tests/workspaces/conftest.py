from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cast import Cast


@pytest.fixture
def cast(request: pytest.FixtureRequest) -> Cast:
    from tests.cast import make_cast  # models can be imported only when Django is set up

    request.getfixturevalue("transactional_db" if _needs_transactions(request) else "db")
    return make_cast()


def _needs_transactions(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    return bool(marker and marker.kwargs.get("transaction"))

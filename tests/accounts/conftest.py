from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Django is not set up yet when this file is read
    from tests.accounts.people import People


@pytest.fixture
def people(db: None) -> People:
    from tests.accounts.people import make_people

    return make_people()

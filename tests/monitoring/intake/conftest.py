"""Fixtures for tests of the intake: the cast, and a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Django has no settings yet when this file is loaded
    from tests.cast import Cast


@pytest.fixture
def cast() -> Cast:
    from tests.cast import make_cast

    return make_cast()


@pytest.fixture
def secret(cast: Cast) -> str:
    from monitoring.intake import tokens

    return tokens.issue(cast.admin, cast.cluster, "nodes")[1]

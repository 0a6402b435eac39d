from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # Django is not set up yet when this file is read
    from tests.accounts.directory.slapd import Slapd


@pytest.fixture
def uni(tmp_path: Path, settings: Any) -> Iterator[Slapd]:
    """A directory that Berth is connected with, and that has nobody yet."""
    from accounts.directory import asking
    from accounts.directory.configuration import directory_from
    from tests.accounts.directory.slapd import slapd

    asking._failed_at.clear()
    with slapd(tmp_path) as server:
        settings.LDAP = directory_from(server.settings())
        yield server

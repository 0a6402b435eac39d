from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.shared.servers.prometheus import Server, prometheus


@pytest.fixture
def server() -> Iterator[Server]:
    with prometheus() as found:
        yield found

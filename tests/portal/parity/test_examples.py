"""Each request of the table does what its row says, sent by `berth` to a Berth over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.portal.parity.book import Example, all_examples
from tests.portal.parity.scene import Scene
from tests.shared.cast_fixtures import api, cast, house, own_rights, played_cluster
from tests.shared.web import berth_in_a_thread

__all__ = ["api", "cast", "house", "own_rights", "played_cluster"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with berth_in_a_thread() as address:
        yield address


@pytest.mark.parametrize("example", all_examples(), ids=str)
def test_a_request_of_the_table_does_what_its_row_says(
    example: Example,
    address: str,
    transactional_db: None,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if example.on_a_cluster:
        scene = Scene(request.getfixturevalue("house"), address, request.getfixturevalue("api"))
    else:
        scene = Scene(request.getfixturevalue("cast"), address)
    example.play(scene)
    assert scene.has_sent(example.request), f"{example.rows}: {example.request} was not sent"

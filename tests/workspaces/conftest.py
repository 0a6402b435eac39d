from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.shared.cast_fixtures import api, cast, house, own_rights, played_cluster

if TYPE_CHECKING:
    from tests.cast import Cast
    from tests.workspaces.play import Play

__all__ = ["api", "cast", "house", "own_rights", "play", "play_with_disk", "played_cluster"]


@pytest.fixture
def play(cast: Cast) -> Play:
    from tests.shared.played_api import PlayedApi
    from tests.workspaces.play import Play

    return Play(cast, PlayedApi())


@pytest.fixture
def play_with_disk(cast: Cast) -> Play:
    from tests.shared.played_api import PlayedApi
    from tests.workspaces.play import Play

    return Play(cast, PlayedApi(), disk_mib=1024)

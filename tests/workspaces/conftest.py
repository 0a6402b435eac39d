from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.shared.cast_fixtures import api, cast, house, own_rights, played_cluster

if TYPE_CHECKING:
    from tests.cast import Cast
    from tests.workspaces.play import Play

__all__ = ["api", "cast", "house", "own_rights", "play", "played_cluster"]


@pytest.fixture
def play(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Play:
    from tests.shared.played_api import PlayedApi
    from tests.workspaces.play import Play
    from workspaces.runs import reconcile as reconciling

    api = PlayedApi()
    monkeypatch.setattr(reconciling, "api_for", lambda cluster: api)
    return Play(cast, api)

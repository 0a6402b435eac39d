from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.shared.cast_fixtures import api, cast, house, own_rights, played_cluster

if TYPE_CHECKING:
    from tests.cast import Cast
    from tests.workspaces.play import Play

__all__ = ["api", "cast", "house", "own_rights", "play", "play_with_disk", "played_cluster"]


@pytest.fixture(autouse=True)
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let claims of jobs stand for whatever else uses a pool: they have no rows of jobs."""
    from quotas import holders
    from quotas.models import Claim

    monkeypatch.delitem(holders._holders, Claim.Holder.JOB)


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

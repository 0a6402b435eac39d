"""Stage of health's tests: the cast, with alice's workspace on gpu-1, whose agent reports four GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.shared.cast_fixtures import cast, own_rights, played_cluster

if TYPE_CHECKING:
    from tests.cast import Cast
    from tests.monitoring.health.ward import Ward

__all__ = ["cast", "own_rights", "played_cluster", "ward"]


@pytest.fixture
def ward(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Ward:
    from monitoring import enqueue
    from monitoring.health import notifying
    from tests.monitoring.health.ward import Ward

    monkeypatch.setattr(enqueue, "tell_of_health", notifying.notify_people)  # no worker runs here
    return Ward(cast)

"""Stage of health's tests: the cast, with alice's workspace on gpu-1, whose agent reports four GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cast import Cast
    from tests.monitoring.health.ward import Ward


@pytest.fixture
def ward(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Ward:
    from monitoring import enqueue
    from monitoring.health import notifying
    from tests.monitoring.health.ward import Ward

    monkeypatch.setattr(enqueue, "tell_of_health", notifying.notify_people)  # no worker runs here
    return Ward(cast)

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Django has no settings yet when this file is loaded
    from tests.shared.stage import Stage


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Test data, for tests with the mark `django_db`; with `transaction=True` where threads or commits matter."""
    from quotas import signals
    from tests.shared.stage import Stage

    # Claims here have no holders: the room above must not look for them.
    for signal in (
        signals.claim_admitted,
        signals.claim_waits,
        signals.claim_preempted,
        signals.claim_preemption_cancelled,
        signals.claim_to_stop,
        signals.claim_ends_by_budget,
        signals.claim_released,
    ):
        monkeypatch.setattr(signal, "receivers", [])
    return Stage()

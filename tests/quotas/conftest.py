from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # Django has no settings yet when this file is loaded
    from tests.quotas.stage import Stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """With a database of its own; `django_db(transaction=True)` where threads or commits matter."""
    from quotas import signals
    from tests.quotas.stage import Stage

    # Claims here have no holders: the room above must not look for them.
    for signal in (
        signals.claim_admitted,
        signals.claim_waits,
        signals.claim_to_stop,
        signals.claim_released,
    ):
        monkeypatch.setattr(signal, "receivers", [])
    marker = request.node.get_closest_marker("django_db")
    with_commits = bool(marker and marker.kwargs.get("transaction"))
    request.getfixturevalue("transactional_db" if with_commits else "db")
    return Stage()

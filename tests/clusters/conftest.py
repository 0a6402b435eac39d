from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.cluster_fixtures import api, kubeconfig, namespace, reached_cluster

if TYPE_CHECKING:  # Django is not set up yet when this file is read
    from tests.clusters.stub import Stub

__all__ = ["api", "kubeconfig", "namespace", "reached_cluster"]


@pytest.fixture
def stub() -> Iterator[Stub]:
    from tests.clusters.stub import serving

    with serving() as started:
        yield started

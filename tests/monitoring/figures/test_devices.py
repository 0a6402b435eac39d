"""GPUs that runs had, and the mean of their use, as attempts of jobs show them."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID, uuid4

import pytest

from clusters.models import Cluster
from monitoring.figures.store import Sample, TrackIdentity, put
from tests.cast import Cast
from workloads import devices

pytestmark = pytest.mark.django_db
NOW = int(time.time()) // 60 * 60 - 3600


def told(cluster: Cluster, device: str, uses: list[float | None], *runs: UUID, **of: Any) -> None:
    identity = TrackIdentity(cluster.pk, "gpu-1", device, runs=frozenset(runs), **of)
    put([Sample(identity, NOW + 10 * number, use) for number, use in enumerate(uses)])


def test_a_run_had_the_gpus_that_reports_named_with_the_mean_of_their_use(cast: Cast) -> None:
    one, other = uuid4(), uuid4()
    told(cast.cluster, "GPU-b", [20, 40], one)
    told(cast.cluster, "GPU-a", [60, 80], one)
    told(cast.cluster, "GPU-c", [100], other)
    told(cast.cluster, "", [100], one)  # its pod's own figures
    assert devices.of([one]) == {one: devices.Devices(("GPU-a", "GPU-b"), 50.0)}
    assert devices.of([one, other])[other] == devices.Devices(("GPU-c",), 100.0)


def test_the_use_of_a_shared_gpu_belongs_to_nobody_alone(cast: Cast) -> None:
    one, other = uuid4(), uuid4()
    told(cast.cluster, "GPU-a", [60], one, other)
    assert devices.of([one]) == {one: devices.Devices(("GPU-a",), None)}
    told(cast.cluster, "GPU-a", [30], one, is_share=True)
    assert devices.of([one])[one].use_percent == 30.0


def test_a_run_without_figures_has_no_gpus(cast: Cast) -> None:
    assert devices.of([uuid4()]) == {}
    assert devices.of([]) == {}

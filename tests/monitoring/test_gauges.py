"""Gauges on the page of a ready workspace: what it uses now, of how much, and what is not known."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from monitoring import gauges
from monitoring.figures.store import Sample, TrackIdentity, put
from storage.models import Kind, Volume
from storage.mounts import homes
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db

GPU = "GPU-00000000-0000-4000-8000-00000000000{}"


def track(cast: Cast, run: UUID | None, device: str = "", label: str = "") -> TrackIdentity:
    assert run is not None
    return TrackIdentity(cast.cluster.pk, "gpu-1", device=device, label=label, runs=frozenset([run]))


def test_gauges_say_how_much_of_what_there_is(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob)
    homes.mount_home(cast.bob.user, cast.demo, cast.cluster, row.pk, None)
    Volume.objects.filter(kind=Kind.HOME).update(used_mib=512, used_of_mib=1024)
    row.pool.gpu_memory_mib = 81_920
    now = time.time() - 20
    for number, use in enumerate((80, 40)):
        device = track(cast, row.run, device=GPU.format(number), label=f"GPU {number}")
        put([Sample(device, now, use, 20_480, 300, 60)])
    put([Sample(track(cast, row.run), now, 2.0, 4096)])
    found = {gauge.name: gauge for gauge in gauges.of(row).all}
    assert {name: gauge.percent for name, gauge in found.items()} == {
        "gpu_utilization": 60,
        "gpu_memory_used": 25,
        "cpu": 50,
        "memory_used": 25,
        "home": 50,
    }
    assert found["gpu_memory_used"].words.replace("\N{NO-BREAK SPACE}", " ") == "40 GiB of 160 GiB"
    assert found["gpu_utilization"].width == "60%"


def test_what_nobody_reports_is_said_to_be_unknown(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob)
    told = gauges.of(row)
    assert {gauge.percent for gauge in told.all} == {None}
    assert "agent" in told.message

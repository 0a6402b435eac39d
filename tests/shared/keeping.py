"""Volumes kept step by step against a real HTTP Kubernetes API: nothing works in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from clusters.models import Installation
from storage import changes
from storage.cluster.look import look
from storage.models import Snapshot, Volume
from tests.cast import Cast
from tests.shared.looking import listed

ENOUGH_SECONDS = 60


def created(
    house: Cast, name: str = "data", kind: str = "dataset", size_mib: int = 128, **wish: Any
) -> Volume:
    """Create a volume of alice's on the class for its kind that the trial cluster has."""
    house.cluster.disk_class, house.cluster.dataset_class = "local-fast", "net-shared"
    house.cluster.shared_classes = ["net-shared"]
    house.cluster.save()
    wanted = changes.Wish(name=name, kind=kind, size_mib=size_mib, **wish)
    return changes.create(house.alice, house.demo.slug, wanted)


def keep(volume: Volume, done: Callable[[Volume], bool], seconds: float = ENOUGH_SECONDS) -> Volume:
    """Look at the volume again and again until it is as expected."""
    deadline = time.monotonic() + seconds
    while True:
        row = Volume.objects.select_related("tenant", "cluster", "owner", "source__volume__tenant").get(
            pk=volume.pk
        )
        if done(row):
            return row
        if time.monotonic() > deadline:
            pytest.fail(f"still {row.phase}: {row.problem} {row.problem_data}")
        look(row, listed(row.cluster, row.tenant.namespace), Installation.current_id())
        time.sleep(0.02)


def settle(row: Snapshot, phase: str = "ready") -> Snapshot:
    """Look at the copy's volume again and again until the copy is as expected."""
    deadline = time.monotonic() + ENOUGH_SECONDS
    while True:
        now = Snapshot.objects.select_related("volume__tenant").get(pk=row.pk)
        if now.phase == phase:
            return now
        assert time.monotonic() < deadline, (now.phase, now.problem, now.problem_data)
        look_at(now.volume)
        time.sleep(0.02)


def look_at(volume: Volume) -> None:
    row = Volume.objects.select_related("tenant", "cluster", "source__volume__tenant").get(pk=volume.pk)
    look(row, listed(row.cluster, row.tenant.namespace), Installation.current_id())


def in_phase(phase: str) -> Callable[[Volume], bool]:
    return lambda volume: volume.phase == phase and volume.dirty_since is None


def with_problem(code: str) -> Callable[[Volume], bool]:
    return lambda volume: volume.problem == code

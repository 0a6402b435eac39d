"""Thinning, labels and health on the tick: the work is enqueued for a worker."""

from __future__ import annotations

from functools import partial

import pytest

from clusters import signals
from clusters.models import Gpu
from monitoring import enqueue
from tests.cast import make_cast

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("second", "wanted"),
    [
        (3, ["monitoring.tasks.label", "monitoring.tasks.pass_time", "monitoring.tasks.thin"]),
        (18, ["monitoring.tasks.pass_time"]),
        (36, []),
    ],
)
def test_what_is_due_is_enqueued(second: int, wanted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cast = make_cast()
    Gpu.objects.create(cluster=cast.cluster, node="gpu-1", uuid="GPU-0", ecc=True)
    enqueued: list[str] = []
    monkeypatch.setattr(enqueue, "async_task", lambda name, *_args, **_options: enqueued.append(name))
    monkeypatch.setattr("time.time", partial(float, 1_800_000_000 + second))
    signals.tick.send(sender=None)
    ours = {"monitoring.tasks.label", "monitoring.tasks.pass_time", "monitoring.tasks.thin"}
    assert sorted(ours.intersection(enqueued)) == wanted

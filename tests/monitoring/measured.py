"""Figures as agents would have reported them: of a workspace's GPUs and pod, and of a node's GPUs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from clusters.models import Gpu, PodUsage
from monitoring.figures.store import Sample, TrackIdentity, put
from monitoring.models import AgentState, Trouble, XidEvent
from tests.cast import Cast
from workspaces.models import Workspace


def wave(age: int, number: int) -> float:
    return 55 + 40 * math.sin((age / 60 + number * 9) / 7)


def measure(
    workspace: Workspace,
    *,
    minutes: int = 60,
    every_seconds: int = 15,
    gpus: int = 1,
    use: Callable[[int, int], float] = wave,
) -> None:
    """Write figures up to now. `use` gets an age in seconds and a GPU's number."""
    assert workspace.run is not None
    cluster, runs, now = workspace.pool.cluster_id, frozenset({workspace.run}), time.time()
    pod = TrackIdentity(cluster, "gpu-1", runs=runs)
    devices = [TrackIdentity(cluster, "gpu-1", f"GPU-gpu-1-{n}", f"GPU {n}", runs) for n in range(gpus)]
    samples = []
    for age in range(minutes * 60, -1, -every_seconds):
        samples.append(Sample(pod, now - age, 1 + use(age, 0) / 50, 4096 + age))
        for number, of in enumerate(devices):
            percent = use(age, number)
            samples.append(
                Sample(of, now - age, percent, 20_000 + 100 * percent, 100 + 2 * percent, 40 + percent / 4)
            )
    put(samples)


def make_gpus(cast: Cast, node: str = "gpu-1", count: int = 4, *, broken: int | None = None) -> None:
    """Create the node's agent and GPUs as reported just now; for the broken one also its Xid and trouble."""
    now = timezone.now()
    there: dict[str, Any] = {"cluster": cast.cluster, "node": node}
    AgentState.objects.create(
        **there, agent="a", taken_at=now, seen_at=now, driver_version="580.65.06", cuda_version="13.0"
    )
    for index in range(count):
        sample = {
            "temperature_celsius": 40 + 8 * index, "power_watts": 90.0 + 80 * index, "slowed_by": [],
            "ecc_uncorrected_since_boot": 0, "ecc_uncorrected_ever": index, "ecc_corrected_since_boot": 2,
            "rows_remapped_corrected": 1, "rows_remapped_uncorrected": 0, "row_remap_pending": index == 2,
        }  # fmt: skip
        Gpu.objects.create(
            **there, index=index, uuid=f"GPU-{node}-{index}", name="NVIDIA A100-SXM4-80GB", memory_mib=81_920,
            utilization_percent=[3, 24, 58, 96][index % 4], memory_used_mib=19_000 * index, sample=sample,
            seen_at=now, out_code="gpu_lost" if index == broken else "",
        )  # fmt: skip
    if broken is not None:
        uuid = f"GPU-{node}-{broken}"
        XidEvent.objects.create(**there, gpu=uuid, xid=79, at=now)
        Trouble.objects.create(**there, about="gpu", subject=uuid, code="gpu_lost", takes_out=True, since=now)


def put_on(workspace: Workspace, *indices: int, node: str = "gpu-1") -> None:
    """Place the workspace's pod on the node with these GPUs."""
    name = f"ws-{workspace.pk}-0"
    PodUsage.objects.create(
        cluster=workspace.pool.cluster, uid=str(workspace.pk), namespace=workspace.tenant.namespace, name=name,
        node=node, run=workspace.run, requests={workspace.pool.resource_name: len(indices)},
    )  # fmt: skip
    held = {"namespace": workspace.tenant.namespace, "pod": name, "container": "workspace"}
    Gpu.objects.filter(node=node, index__in=indices).update(held_by=[held])

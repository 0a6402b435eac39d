"""Nodes with everything that their pages show."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from clusters.models import Gpu, PodUsage
from monitoring.models import AgentState, Trouble, XidEvent
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace


def furnish(cast: Cast, node: str = "gpu-1") -> None:
    """Add an agent, a workspace on one GPU, and a broken GPU with its Xid and trouble."""
    now = timezone.now()
    there: dict[str, Any] = {"cluster": cast.cluster, "node": node}
    AgentState.objects.create(
        **there, agent="a", taken_at=now, seen_at=now, driver_version="580.65.06", cuda_version="13.0"
    )
    workspace = make_workspace(cast, cast.bob, name=f"train-{node}")
    PodUsage.objects.create(
        **there, uid=node, namespace="berth-demo", name=f"ws-{node}", run=workspace.run, requests={}
    )
    held = [{"namespace": "berth-demo", "pod": f"ws-{node}", "container": "main"}]
    sample = {
        "temperature_celsius": 61,
        "power_watts": 300,
        "ecc_uncorrected_since_boot": 2,
        "slowed_by": ["heat"],
    }
    common: dict[str, Any] = {
        **there, "name": "NVIDIA A100", "memory_mib": 81_920, "memory_used_mib": 40_960, "seen_at": now,
        "utilization_percent": 80, "sample": sample,
    }  # fmt: skip
    Gpu.objects.create(index=0, uuid=f"GPU-a-{node}", held_by=held, **common)
    Gpu.objects.create(index=1, uuid=f"GPU-b-{node}", out_code="gpu_lost", **common)
    XidEvent.objects.create(**there, gpu=f"GPU-b-{node}", xid=79, at=now)
    Trouble.objects.create(
        **there, about="gpu", subject=f"GPU-b-{node}", code="gpu_lost", takes_out=True, since=now
    )

"""Reports of an agent, in short: one GPU that works, unless the test changes it."""

from __future__ import annotations

import json
import time
from typing import Any

from django.http import HttpResponse
from django.test import Client

GPU_0, GPU_1 = "GPU-00000000-0000-4000-8000-000000000000", "GPU-11111111-1111-4111-8111-111111111111"


def facts(index: int = 0, uuid: str = GPU_0, **more: Any) -> dict[str, Any]:
    told = {
        "index": index,
        "uuid": uuid,
        "name": "NVIDIA A100-SXM4-80GB",
        "memory_mib": 81920,
        "ecc": True,
        "compute_capability": "8.0",
        "mig_devices": [],
    }
    return told | more


def sample(uuid: str = GPU_0, **more: Any) -> dict[str, Any]:
    told = {
        "uuid": uuid,
        "state": "ok",
        "utilization_percent": 50,
        "memory_used_mib": 1024,
        "power_watts": 250.5,
        "temperature_celsius": 60,
        "ecc_uncorrected_since_boot": 0,
    }
    return told | more


def report(sequence: int = 1, *samples: dict[str, Any], ago: float = 0, **more: Any) -> dict[str, Any]:
    told = {
        "sequence": sequence,
        "taken_at": time.time() - ago,
        "troubles": [],
        "gpus": list(samples) or [sample()],
        "holdings": [],
        "xids": [],
    }
    return told | more


def holding(pod: str, uuid: str | None = GPU_0, **more: Any) -> dict[str, Any]:
    told = {"namespace": "berth-demo", "pod": pod, "container": "workspace", "resource": "nvidia.com/gpu"}
    return told | {"device": uuid} | ({"uuid": uuid} if uuid else {}) | more


def batch(*reports: dict[str, Any], gpus: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    told = {
        "version": 1,
        "node": "gpu-1",
        "agent": "a1",
        "sent_at": time.time(),
        "dropped": 0,
        "inventory": {
            "driver_version": "570.86.15",
            "cuda_version": "12.8",
            "gpus": [facts()] if gpus is None else gpus,
        },
        "reports": list(reports) or [report()],
    }
    return told | more


def send(secret: str, body: Any, kind: str = "samples", **headers: str) -> HttpResponse:
    """Post the body as an agent does."""
    data = body if isinstance(body, bytes | str) else json.dumps(body)
    response = Client().post(
        f"/api/v1/agent/{kind}/",
        data,
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}", **headers},
    )
    assert isinstance(response, HttpResponse)
    return response

"""Nodes and pods as Kubernetes tells of them."""

from __future__ import annotations

from typing import Any

INSTALLATION = "5f6a1f3e-0000-4000-8000-000000000001"


def node_body(name: str = "n1", ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.product": "T4", "nvidia.com/gfd.timestamp": "1790000000"},
        },
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "63500m", "memory": "512Gi", "nvidia.com/gpu": "4", "pods": "110"},
            "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": ready}],
        },
    }


def pod_body(
    uid: str = "u1", node: str | None = "n1", phase: str = "Running", **labels: str
) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "namespace": "berth-demo", "name": f"ws-{uid}", "labels": labels},
        "spec": {
            "containers": [asks(cpu="500m", memory="1Gi", **{"nvidia.com/gpu": "1"})],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase},
    }


def asks(restart: str | None = None, **requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}, **({"restartPolicy": restart} if restart else {})}

"""Rows of nodes and parts, unsaved, for rules; and how they are saved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from clusters.models import Node, PartPod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
A100 = {"nvidia.com/gpu.product": "A100"}


def node(name: str, *, ready: bool = True, labels: dict[str, str] | None = None, **system: str) -> Node:
    return Node(name=name, ready=ready, labels=A100 if labels is None else labels, system=system)


def nodes(count: int, **values: Any) -> list[Node]:
    return [node(f"gpu-{number}", **values) for number in range(count)]


def part(name: str, on: str = "gpu-0", **values: Any) -> PartPod:
    given = {"uid": f"{name}-{on}", "namespace": "kube-system", "name": f"{name}-{on}".lower(), "ready": True}
    return PartPod(part=name, node=on, **{"owner": "DaemonSet/x", "version": "v1.0.0", **given, **values})


def everywhere(name: str, on: list[Node], **values: Any) -> list[PartPod]:
    return [part(name, one.name, **values) for one in on]


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)

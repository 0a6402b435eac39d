"""Launch requests."""

from __future__ import annotations

from typing import Any

from workloads.sizes.sizing import SizeAsked
from workspaces.launch.launch import LaunchSpec


def spec(**changes: Any) -> LaunchSpec:
    values: dict[str, Any] = {
        "tenant": "demo",
        "name": "exp-1",
        "image": "jupyter",
        "size": SizeAsked(flavor="a100-1"),
    }
    return LaunchSpec(**(values | changes))

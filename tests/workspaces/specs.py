"""Launch requests."""

from __future__ import annotations

from typing import Any

from workspaces.launch.launch import LaunchSpec
from workspaces.sizes.sizing import SizeAsked


def spec(**changes: Any) -> LaunchSpec:
    values: dict[str, Any] = {
        "tenant": "demo",
        "name": "exp-1",
        "image": "jupyter",
        "size": SizeAsked(flavor="a100-1"),
    }
    return LaunchSpec(**(values | changes))

"""Files that run inside a container, as text for a ConfigMap. The portal imports none of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("environment.sh", "python_layer.py")


@cache
def files() -> dict[str, str]:
    """Files of /berth/start by name, for workspaces and jobs."""
    return {name: (FOLDER / name).read_text() for name in NAMES}

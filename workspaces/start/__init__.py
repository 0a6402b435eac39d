"""What runs inside a workspace's container, as text for its ConfigMap. Nothing here is imported by the portal."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("start.sh", "ssh_server.py", "python_layer.py", "jupyter_config.py")


@cache
def files() -> dict[str, str]:
    """The files of /berth/start by name; passwd and group come beside them, from the image's entry."""
    return {name: (FOLDER / name).read_text() for name in NAMES}

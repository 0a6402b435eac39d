"""Files that run inside a workspace's container, as text for its ConfigMap. The portal imports none of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from workloads import start

FOLDER = Path(__file__).parent
NAMES = (
    "start.sh",
    "status.sh",
    "berth_status.py",
    "berth_apps.py",
    "berth_doors.py",
    "ssh_server.py",
    "jupyter_config.py",
)


@cache
def files() -> dict[str, str]:
    """Files of /berth/start by name. passwd and group are added from the image's entry."""
    return start.files() | {name: (FOLDER / name).read_text() for name in NAMES}

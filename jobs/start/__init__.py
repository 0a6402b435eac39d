"""Files that run inside a job's container, as text for its ConfigMap."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from workloads import start

FOLDER = Path(__file__).parent


@cache
def files() -> dict[str, str]:
    """Files of /berth/start by name. passwd and group are added from the image's entry."""
    return start.files() | {name: (FOLDER / name).read_text() for name in ("job.sh", "distributed.sh")}

"""Program that serves files inside the pod of a files session, as text for its ConfigMap. Berth imports none of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("about.py", "server.py", "sftp.py", "tree.py")


@cache
def files() -> dict[str, str]:
    """Files of /berth/files by name."""
    return {name: (FOLDER / name).read_text() for name in NAMES}

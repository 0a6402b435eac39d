"""Starting and stopping a trial (played pods)"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import Figure
from tests.e2e.stack import Stack


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        Path(folder).chmod(0o711)
        stack = Stack(Path(folder) / "state", BERTH_DEVCLUSTER_PODS="played")
        for when in ("first", "again"):
            yield Figure(f"start to /readyz, {when}", stack.start(), "s")
            yield Figure(f"stop, {when}", stack.stop(), "s")

"""Starting and stopping a trial (played pods)"""

from collections.abc import Iterator

from tests.bench import Figure
from tests.bench.helpers.parts import temporary
from tests.e2e.stack import Stack


def measure() -> Iterator[Figure]:
    with temporary() as folder:
        stack = Stack(folder / "state", BERTH_DEVCLUSTER_PODS="played")
        for when in ("first", "again"):
            yield Figure(f"start to /readyz, {when}", stack.start(), "s")
            yield Figure(f"stop, {when}", stack.stop(), "s")

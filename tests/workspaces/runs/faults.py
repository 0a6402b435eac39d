"""Events of a workspace as they have to be, and for how long a machine of looks waits for quiet."""

from __future__ import annotations

from workspaces.models import STEPS, Workspace

ROUNDS_UNTIL_QUIET = 30
ROUNDS_OF_QUIET = 6


def check_events(row: Workspace) -> None:
    """Check that events are numbered without a gap, and that each run reports its steps once and in order."""
    numbers = list(row.events.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, row.last_event + 1))
    for run in set(row.events.values_list("run", flat=True)):
        done = row.events.filter(run=run, level="info").exclude(step="").order_by("number")
        assert list(done.values_list("step", flat=True)) == list(STEPS[: len(done)])

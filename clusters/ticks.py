"""Work of the rooms above that is due less often than `signals.tick` comes."""

from __future__ import annotations

import time

# A tick comes five seconds after the one before, or up to a second later.
LONGEST_SECONDS = 6


def is_due(every_seconds: int) -> bool:
    """At one tick of so many seconds; now and then at two, and at none where a tick came late: the next one is near."""
    return time.time() % every_seconds < LONGEST_SECONDS

"""Work of the rooms above that is due less often than `signals.tick` comes."""

from __future__ import annotations

import time

# A tick comes five to six seconds after the one before.
LONGEST_SECONDS = 6


def is_due(every_seconds: int) -> bool:
    """Return True at one tick in so many seconds; rarely at two, or at none after a late tick: the next is near."""
    return time.time() % every_seconds < LONGEST_SECONDS

"""Pauses that grow between failed tries."""

from devcluster.nodes import Pauses


class BackOff:
    """Pause that doubles each time, up to the longest; a long enough success resets it."""

    def __init__(self, pauses: Pauses, *, at_once: bool = False):
        self._pauses, self._at_once = pauses, at_once
        self._next = 0.0 if at_once else pauses.first_seconds

    def next(self, steady_seconds: float = 0.0) -> float:
        """Return the seconds to wait now; the first pause is 0 with `at_once`."""
        if steady_seconds >= self._pauses.reset_seconds:
            self._next = 0.0 if self._at_once else self._pauses.first_seconds
        pause = self._next
        self._next = min(pause * 2, self._pauses.most_seconds) if pause else self._pauses.first_seconds
        return pause


def in_words(seconds: float) -> str:
    """Write a duration as Go does."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"

"""Growing pauses between tries that fail."""

from devcluster.nodes import Pauses


class BackOff:
    """The first pause, doubled each time up to the longest; after a long enough success it begins anew."""

    def __init__(self, pauses: Pauses, *, at_once: bool = False):
        self._pauses, self._at_once = pauses, at_once
        self._next = 0.0 if at_once else pauses.first_seconds

    def next(self, steady_seconds: float = 0.0) -> float:
        """How long to wait now; `at_once` makes the first wait none."""
        if steady_seconds >= self._pauses.reset_seconds:
            self._next = 0.0 if self._at_once else self._pauses.first_seconds
        pause = self._next
        self._next = min(pause * 2, self._pauses.most_seconds) if pause else self._pauses.first_seconds
        return pause


def in_words(seconds: float) -> str:
    """As Go writes a duration."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"

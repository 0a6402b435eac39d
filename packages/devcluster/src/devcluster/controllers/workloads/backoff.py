"""Pauses that grow with each failure in a row."""

from collections import Counter
from collections.abc import Hashable


class Backoff:
    def __init__(self, first_seconds: float, longest_seconds: float):
        self._first, self._longest = first_seconds, longest_seconds
        self._failures: Counter[Hashable] = Counter()

    def failed(self, key: Hashable) -> float:
        """Count a failure. Return the seconds to wait before the next try."""
        self._failures[key] += 1
        return min(self._first * 2.0 ** min(self._failures[key] - 1, 30), self._longest)

    def forget(self, key: Hashable) -> None:
        self._failures.pop(key, None)

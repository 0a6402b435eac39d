"""Places of which each person, or each address, may take so many at once within this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class Places:
    """Counter of places with a limit for each key, and one for all keys together."""

    def __init__(self, each: int, together: int | None = None) -> None:
        self._each, self._together = each, together
        self._taken: Counter[Hashable] = Counter()

    def take(self, key: Hashable) -> bool:
        full = self._together is not None and self._taken.total() >= self._together
        if full or self._taken[key] >= self._each:
            return False
        self._taken[key] += 1
        return True

    def give_back(self, key: Hashable) -> None:
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]

    @property
    def taken(self) -> int:
        return self._taken.total()

    def __bool__(self) -> bool:
        return bool(self._taken)

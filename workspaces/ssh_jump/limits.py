"""Limits for one address before it has signed in, and for one person after, within this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

LOGIN_SECONDS = 20
KEYS_TRIED = 30  # an SSH agent offers all its keys
BYTES_BEFORE_LOGIN = 256 * 1024
STRANGERS = 300
STRANGERS_PER_ADDRESS = 10
CONNECTIONS_PER_PERSON = 64
TUNNELS_PER_PERSON = 256
TUNNELS_PER_CONNECTION = 64


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


@dataclass
class House:
    """Places that are taken in this process."""

    strangers: Places = field(default_factory=lambda: Places(STRANGERS_PER_ADDRESS, STRANGERS))
    connections: Places = field(default_factory=lambda: Places(CONNECTIONS_PER_PERSON))
    tunnels: Places = field(default_factory=lambda: Places(TUNNELS_PER_PERSON))

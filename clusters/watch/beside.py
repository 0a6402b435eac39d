"""Work of the rooms above that runs where a cluster's mirror is: they register what begins it, in their `apps.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from clusters.mirror import Mirror
from clusters.models import Cluster
from clusters.transport import Json


class Beside(Protocol):
    """Threads that work on one cluster as long as this process watches it. No call may block."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...

    def listed(self) -> None:
        """Take note that the mirror is complete: at first, and again after every gap."""

    def changed(self, change: str, body: Json) -> None:
        """Take note of one change: ADDED, MODIFIED or DELETED."""


made: list[Callable[[Cluster, Mirror], Beside]] = []


def register(begin: Callable[[Cluster, Mirror], Beside]) -> None:
    made.append(begin)

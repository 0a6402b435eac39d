"""Faults of workers and clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusters.errors import ClusterRefused, ClusterUnavailable

AWAY = ClusterUnavailable("away")


REFUSED = ClusterRefused(403, "Forbidden", "not now")


ROUNDS_UNTIL_QUIET = 30


LONG_AGO = "2026-01-01T00:00:00Z"


class Killed(BaseException):
    """The worker's end between two statements or calls."""


def after(calls: int, error: BaseException) -> Callable[..., None]:
    """Return a function that does nothing for so many calls, then raises the error, once."""
    left = iter([None] * calls + [error])

    def call(*_: Any) -> None:
        if (problem := next(left, None)) is not None:
            raise problem

    return call

"""Faults of workers and clusters, for looks that are made step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connection

from clusters.errors import ClusterRefused, ClusterUnavailable
from tests.shared.played_api import Object

AWAY = ClusterUnavailable("away")
REFUSED = ClusterRefused(403, "Forbidden", "not now")


class Killed(BaseException):
    """The worker's end between two statements or calls."""


def is_alive(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] in ("Pending", "Running")


def after(calls: int, error: BaseException) -> Callable[..., None]:
    """Return a function that does nothing for so many calls, then raises the error, once."""
    left = iter([None] * calls + [error])

    def call(*_: Any) -> None:
        if (problem := next(left, None)) is not None:
            raise problem

    return call


@contextmanager
def killed_after(statements: int) -> Iterator[None]:
    """Kill the worker before a statement to the database. Uncommitted changes are lost."""
    fuse = after(statements, Killed())

    def execute(run: Any, sql: str, *rest: Any) -> Any:
        if "pg_advisory_unlock" not in sql and not sql.startswith(("SAVEPOINT", "ROLLBACK", "RELEASE")):
            fuse()
        return run(sql, *rest)

    with connection.execute_wrapper(execute), suppress(Killed):
        yield

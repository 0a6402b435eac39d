"""Faults of workers and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connection

from clusters.errors import ClusterRefused, ClusterUnavailable
from tests.shared.played_api import Object
from workspaces.models import STEPS, Workspace

AWAY = ClusterUnavailable("away")
REFUSED = ClusterRefused(403, "Forbidden", "not now")
ROUNDS_UNTIL_QUIET = 30
ROUNDS_OF_QUIET = 6


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


def check_events(row: Workspace) -> None:
    """Check that events are numbered without a gap, and that each run reports its steps once and in order."""
    numbers = list(row.events.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, row.last_event + 1))
    for run in set(row.events.values_list("run", flat=True)):
        done = row.events.filter(run=run, level="info").exclude(step="").order_by("number")
        assert list(done.values_list("step", flat=True)) == list(STEPS[: len(done)])

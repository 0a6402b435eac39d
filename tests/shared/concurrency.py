"""Threads that work at the same time on the same rows, each with its own connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connection

from tests.crew import on_its_own

THREADS = 8


@contextmanager
def whenever_deleting(table: str, write: Callable[[], Any]) -> Iterator[None]:
    """Call `write` on a connection of its own, just before each deletion from the table."""

    def run(execute: Callable[..., Any], sql: str, *others: Any) -> Any:
        if sql.startswith(f'DELETE FROM "{table}"'):
            with ThreadPoolExecutor(1) as threads:
                threads.submit(on_its_own, write).result()
        return execute(sql, *others)

    with connection.execute_wrapper(run):
        yield


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Run `work` in threads that start together, each with its own connection."""
    start = threading.Barrier(threads)

    def in_thread(number: int) -> Any:
        try:
            start.wait(60)
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(in_thread, range(threads)))


def elsewhere(work: Callable[[], Any]) -> threading.Thread:
    """Start a thread with its own connection, as another process."""
    thread = threading.Thread(target=on_its_own, args=(work,))
    thread.start()
    return thread


WAITS_FOR_ME = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
)


def waits_for_me() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS_FOR_ME)
        return bool(cursor.fetchone()[0])

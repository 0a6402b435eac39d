"""Row locks, always taken in the same order, so that transactions cannot deadlock (PostgreSQL would abort one).

The order of kinds within one transaction:

1. locks that admit one request at a time: the new row of a request's key or form, the lock of sign-on
2. clusters' admission locks (`quotas.admission.lock`), all of them at once
3. people, then tenants; all that a change needs of both, before it changes the first
4. what belongs to them: memberships, keys, tokens, kept answers, limits
5. claims, workspaces and volumes: under the cluster's lock, or all that are needed in one step as `locked` does
6. one node's rows: its agent's reports, its health (`one_at_a_time`, before the first of these rows)
7. rows after which nothing else is locked: findings, troubles, notices, tasks, audit entries

Within a kind, rows are locked in the order of their keys, and no harder than a change needs: on commit PostgreSQL
checks foreign keys with a lock that conflicts with a plain FOR UPDATE. An audit entry points to its person, so its
transaction would wait at its end, with all its locks, for another one that locked that person.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import Model, QuerySet
from psycopg.errors import DeadlockDetected, LockNotAvailable

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Model)
# Old rows that one cleanup deletes: a request that cleans up must not pay for what thousands left.
FORGOTTEN_AT_ONCE = 500
# Shorter than the time after which PostgreSQL looks for a deadlock (1 s): others go on, and upkeep tries again later.
LONGEST_WAIT_OF_UPKEEP = "500ms"


def locked(rows: QuerySet[M], *, skip_busy: bool = False) -> QuerySet[M]:
    """Return the rows, which lock one by one in the order of their keys. Use it inside a transaction."""
    chosen = rows.select_for_update(of=("self",), no_key=True, skip_locked=skip_busy)
    return chosen.order_by("pk")


def for_change(rows: QuerySet[M]) -> QuerySet[M]:
    """Return the rows for one UPDATE or DELETE, locked by key first: the statement alone would lock in any order."""
    return rows.model._default_manager.filter(pk__in=locked(rows).values("pk"))


def forget(rows: QuerySet[M]) -> None:
    """Delete up to FORGOTTEN_AT_ONCE old rows, except those that another transaction has locked: it never waits."""
    with transaction.atomic():
        old = locked(rows, skip_busy=True).values("pk")[:FORGOTTEN_AT_ONCE]
        rows.model._default_manager.filter(pk__in=old).delete()


def one_at_a_time(name: str) -> None:
    """Lock this name until the transaction ends; wait for another that has it. A second call does not wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def alone_or_later(name: str) -> None:
    """Begin upkeep of tables in a transaction: one process at a time, which waits half a second at most for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_OF_UPKEEP}'")
    one_at_a_time(name)


@contextmanager
def later_if_busy(what: str) -> Iterator[None]:
    """Give upkeep up, with a line in the log, if others hold its tables: the next call does it."""
    try:
        yield
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable | DeadlockDetected):
            raise
        log.info("%s: busy, looked after later", what)


@contextmanager
def one_after_another(name: str) -> Iterator[None]:
    """Lock this name across several transactions. Never call it inside one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])


@contextmanager
def alone(key: UUID) -> Iterator[bool]:
    """Yield True if no other process has the key: a lock of the database session, gone if the process dies."""
    number = key.int % (1 << 62)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
        (mine,) = cursor.fetchone()
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [number])

"""How rows are locked, so that of several at once nobody waits in a ring (a deadlock, of which one is undone).

The order between kinds, for whatever is done in one transaction:

1. what lets in one at a time: the new row of a request's key or form, signing on
2. clusters' admission locks (`quotas.admission.lock`), all of them at once
3. people, then tenants; what one change needs of both, before it changes the first
4. what belongs to them: memberships, keys, tokens, kept answers, limits
5. claims and workspaces: under the cluster's lock, or all that are needed in one step as `locked` does
6. of one node alone: what its agent told, how it is (`one_at_a_time`, before the first row of it)
7. what nobody holds and then waits: findings, troubles, notices, tasks, lines of the trail

Within a kind rows are locked by key. And never harder than a change needs: PostgreSQL looks after a foreign key when
the transaction commits, by a lock that a plain FOR UPDATE keeps out. A line of the trail, which points to its person,
would then wait for whoever locked that person: at the end of its transaction, holding all that it changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, transaction
from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def locked(rows: QuerySet[M], *, skip_busy: bool = False) -> QuerySet[M]:
    """The same rows, locked against changes one after the other by key. Inside a transaction."""
    chosen = rows.select_for_update(of=("self",), no_key=True, skip_locked=skip_busy)
    return chosen.order_by("pk")


def for_change(rows: QuerySet[M]) -> QuerySet[M]:
    """The same rows, to be changed by one statement, which would else lock them as it comes across them."""
    return rows.model._default_manager.filter(pk__in=locked(rows).values("pk"))


def forget(rows: QuerySet[M]) -> None:
    """Delete what is old and in nobody's hands: whoever tidies up waits for nobody."""
    with transaction.atomic():
        rows.model._default_manager.filter(pk__in=locked(rows, skip_busy=True).values("pk")).delete()


def one_at_a_time(name: str) -> None:
    """Whoever asks for this name waits for the end of the transaction that has it; the same one may ask again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


@contextmanager
def one_after_another(name: str) -> Iterator[None]:
    """The same of what is more than one transaction, and never called inside of one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])

"""Partitions of the audit trail: one table per month, so that old entries go with a table and not row by row.

The partitions cover all of time, so that an entry always finds its place, and a page of the newest entries needs to
read those of the last month only (PostgreSQL could not order them so if one was a DEFAULT partition):

- the first has no beginning: entries from before there were partitions, later whatever is dated before what is kept;
- then one table per month, some months ahead;
- the last has no end, and is empty unless nobody made the next months in time.

Each partition has its own primary key: the trail's could not be `id` alone, as PostgreSQL wants the month in it. One
sequence numbers all of them. Names of people and tenants stay in the entries when the rows they point to are deleted.
Functions of the database change the partitions (migration 0008): they act as its owner, for a worker that owns nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction

from accounts.locks import alone_or_later

TRAIL = "accounts_auditentry"
FIRST, LAST = f"{TRAIL}_first", f"{TRAIL}_last"
# Months for which there are tables before they begin.
AHEAD = 3
PARTITIONS = """
    SELECT child.relname, pg_get_expr(child.relpartbound, child.oid)
    FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = %s::regclass
"""
BOUNDS = re.compile(r"FOR VALUES FROM \((?:MINVALUE|'([^']+)')\) TO \((?:MAXVALUE|'([^']+)')\)")


@dataclass(frozen=True)
class Partition:
    """A table of entries from `since` on and before `until`; None: without beginning or end."""

    name: str
    since: datetime | None
    until: datetime | None


def month_of(moment: datetime, after: int = 0) -> datetime:
    """Return the beginning, in UTC, of the moment's month, or of the month so many months after it."""
    moment = moment.astimezone(UTC)
    months = moment.year * 12 + moment.month - 1 + after
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def partitions() -> list[Partition]:
    """Return the trail's partitions, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(PARTITIONS, [TRAIL])
        found = [_read(name, bounds) for name, bounds in cursor.fetchall()]
    return sorted(found, key=lambda each: each.since or datetime.min.replace(tzinfo=UTC))


def make_months(now: datetime) -> None:
    """Make the tables of the next months. Entries in the last table get their own, up to the end of this month."""
    with transaction.atomic():
        alone_or_later("accounts.trail.partitions")
        execute("SELECT accounts_trail_make_months(%s, %s)", month_of(now), AHEAD)


def drop_before(moment: datetime) -> None:
    """Drop the tables that end at or before the moment, with an entry in the trail for each that had entries.

    Entries with an older time find a new first table. Drop nothing if all that is old is a first table without entries.
    """
    with transaction.atomic():
        alone_or_later("accounts.trail.partitions")
        old = [each for each in partitions() if each.until is not None and each.until <= moment]
        if len(old) > 1 or any(_has_entries(each) for each in old):
            execute("SELECT accounts_trail_drop_before(%s)", moment)


def execute(statement: str, *values: datetime | int | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _has_entries(partition: Partition) -> bool:
    """Look for an entry through the trail: nobody but the owner may read a partition by itself."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM {TRAIL} WHERE at >= coalesce(%s, '-infinity'::timestamptz) AND at < %s)",  # noqa: S608
            [partition.since, partition.until],
        )
        return bool(cursor.fetchone()[0])


def _read(name: str, bounds: str) -> Partition:
    found = BOUNDS.fullmatch(bounds)
    assert found is not None, f"{name} is no partition by time: {bounds}"
    since, until = (text and datetime.fromisoformat(text).astimezone(UTC) for text in found.groups())
    return Partition(name, since or None, until or None)

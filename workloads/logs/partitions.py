"""Partitions of the chunks: one table for each day on which chunks expire, so that dropping it frees all its space.

Functions of the database change them (migration 0002), as its owner.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date

from django.db import connection, transaction

from accounts.locks import LONGEST_WAIT_OF_UPKEEP, alone_or_later

TABLE = "workloads_logchunk"
NAMED = re.compile(rf"{TABLE}_(\d{{4}})_(\d\d)_(\d\d)")
CHILDREN = """
    SELECT child.relname, pg_total_relation_size(child.oid)
    FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = %s::regclass
"""


def there() -> dict[date, int]:
    """Return the partitions by their day, with the bytes that each takes on disk."""
    with connection.cursor() as cursor:
        cursor.execute(CHILDREN, [TABLE])
        found = [(NAMED.fullmatch(name), size) for name, size in cursor.fetchall()]
    return {date(*map(int, match.groups())): size for match, size in found if match}


def name_of(day: date) -> str:
    return f"{TABLE}_{day:%Y_%m_%d}"


def make(days: Collection[date]) -> None:
    """Make the partitions of these days that are missing. Readers and writers of other days go on meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) name WHERE to_regclass(name) IS NULL",
            [[name_of(day) for day in days]],
        )
        missing = {name for (name,) in cursor.fetchall()}
    for day in sorted(days):
        if name_of(day) in missing:
            _make(day)


def _make(day: date) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        alone_or_later("workloads.logs.partitions")
        if day not in there():
            cursor.execute("SELECT workloads_logs_make_day(%s)", [day])


def drop_before(day: date) -> list[date]:
    """Drop the partitions of earlier days. Return their days."""
    old = sorted(each for each in there() if each < day)
    if old:
        with transaction.atomic(), connection.cursor() as cursor:
            alone_or_later("workloads.logs.partitions")
            cursor.execute("SELECT workloads_logs_drop_days(%s)", [old])
    return old


def used_bytes(day: date) -> int:
    """Return what the chunks of a partition take, as an index tells."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT coalesce(sum(stored_bytes), 0) FROM {TABLE} WHERE expires_on = %s",  # noqa: S608 - a name of ours
            [day],
        )
        return int(cursor.fetchone()[0])


def rewrite(day: date) -> None:
    """Give the space of deleted chunks back to the disk. Readers of that day wait; never call it in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{LONGEST_WAIT_OF_UPKEEP}'")
        try:
            cursor.execute("SELECT workloads_logs_rewrite_day(%s)", [day])
        finally:
            cursor.execute("RESET lock_timeout")

"""Backups of the database as one zip file: a member per table, as COPY writes it, and a description.

It needs nothing but a connection, so it works in a pod that has no programs of PostgreSQL, against any version of the
server. What it holds is one moment: one transaction reads it all. BERTH_SECRET_KEY is not in it.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import IO, Any

from django.db import DatabaseError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from psycopg import Cursor, Error, sql

from accounts.credentials.secrets import Unreadable, decrypt, encrypt
from workloads.logs import partitions

DESCRIPTION = "backup.json"
FORMAT = 1
PIECE = 1 << 20
# Sessions end with a restoration: everybody signs in again. Migrations and release are those of the code.
LEFT_OUT = ("django_session", "django_migrations", "vitals_release")
# Tables and partitioned tables, without partitions: their rows are read and written through the whole.
# Unlogged ones hold nothing that is worth keeping. Generated columns are generated again.
TABLES = """
SELECT c.relname, array_agg(a.attname ORDER BY a.attnum)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relpersistence = 'p' AND c.relname <> ALL(%s)
GROUP BY c.relname ORDER BY c.relname
"""
SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1"
WITH_TRIGGERS = """
SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND t.tgparentid = 0 AND c.relnamespace = current_schema()::regnamespace
"""
CONNECTED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Unusable(Exception):
    """A backup that cannot be restored here; says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Description:
    """Content of a backup. `key` is a text that the installation's key can read.

    `log_days` are the days whose partitions the chunks of logs need: no migration makes them.
    """

    format: int
    taken_at: str
    migrations: list[str]
    tables: dict[str, list[str]]
    sequences: dict[str, int | None]
    key: str
    log_days: list[str] = field(default_factory=list)


def write(file: IO[bytes]) -> Description:
    """Write a backup of this moment; the file need not be seekable."""
    with transaction.atomic(), cursor() as at, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        at.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        tables = columns(at)
        for table, names in tables.items():
            rows = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(listed(names), sql.Identifier(table))
            with at.copy(rows) as copy, archive.open(table, "w", force_zip64=True) as member:
                for piece in copy:
                    member.write(piece)
        described = Description(
            FORMAT,
            timezone.now().isoformat(),
            migrations(),
            tables,
            sequences(at),
            encrypt(DESCRIPTION),
            [str(day) for day in sorted(partitions.there())],
        )
        archive.writestr(DESCRIPTION, json.dumps(asdict(described), indent=1))
    return described


def check(archive: zipfile.ZipFile) -> Description:
    """Return what a backup holds. Raise Unusable if this database, code and key cannot take it."""
    if (broken := archive.testzip()) is not None:
        raise Unusable(f"The file is damaged at {broken}. Take another backup.")
    try:
        described = Description(**json.loads(archive.read(DESCRIPTION)))
    except (KeyError, TypeError, ValueError):
        raise Unusable("The file is no backup of Berth's.") from None
    if set(described.tables) | {DESCRIPTION} != set(archive.namelist()):
        raise Unusable("The file is no whole backup: tables are missing. Take another one.")
    if described.migrations != migrations():
        raise Unusable(
            "The backup is of another version of Berth. Install that version, run `manage.py migrate` on an empty "
            f"database, restore, then upgrade. Only one of the two has: {differing(described.migrations)}."
        )
    try:
        decrypt(described.key)
    except Unreadable:
        raise Unusable(
            "BERTH_SECRET_KEY is not the one of the backup: its secrets could not be read. Set it, or put it into "
            "BERTH_SECRET_KEY_FALLBACKS."
        ) from None
    return described


def restore(archive: zipfile.ZipFile, *, replace: bool = False) -> Description:
    """Fill the database from a backup: all of it, or nothing. One that holds people is emptied only with `replace`."""
    described = check(archive)
    try:
        with transaction.atomic(), cursor() as at:
            there = columns(at)
            if there != described.tables:
                raise Unusable("The database's tables are not those of the backup. Run `manage.py migrate`.")
            refuse_in_use(at, replace=replace)
            fill(at, archive, described)
            for name, value in described.sequences.items():
                if value is not None:
                    at.execute("SELECT setval(quote_ident(%s)::regclass, %s)", [name, value])
    except (Error, DatabaseError) as error:
        raise Unusable(f"Nothing was restored. PostgreSQL refused it: {error}") from None
    return described


def fill(at: Cursor[Any], archive: zipfile.ZipFile, described: Description) -> None:
    """Replace the rows of all tables. No trigger acts on them: what triggers wrote is in the backup, too."""
    at.execute(sql.SQL("TRUNCATE {}").format(listed([*described.tables, "django_session"])))
    partitions.make({date.fromisoformat(day) for day in described.log_days})
    at.execute("SET CONSTRAINTS ALL DEFERRED")
    silenced = [name for (name,) in at.execute(WITH_TRIGGERS).fetchall()]
    for table in silenced:
        at.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table)))
    for table, names in described.tables.items():
        rows = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), listed(names))
        with archive.open(table) as member, at.copy(rows) as copy:
            for piece in pieces(member):
                copy.write(piece)
    at.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what refers to a missing row is refused here
    for table in silenced:
        at.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier(table)))


def refuse_in_use(at: Cursor[Any], *, replace: bool) -> None:
    """Raise Unusable if the database holds people, or if parts of Berth are connected to it."""
    (others,) = at.execute(CONNECTED).fetchone() or (0,)
    if others:
        raise Unusable(
            f"{others} other connections use the database. Stop web, worker, watcher, collector and jump."
        )
    (people,) = at.execute("SELECT count(*) FROM accounts_user").fetchone() or (0,)
    if people and not replace:
        raise Unusable(f"The database holds {people} people. To lose all that it holds, add --replace.")


# --- the database


def cursor() -> Any:
    """Return a cursor of psycopg's own: Django's has no COPY."""
    connection.ensure_connection()
    return connection.connection.cursor()


def columns(at: Cursor[Any]) -> dict[str, list[str]]:
    return {name: list(names) for name, names in at.execute(TABLES, [list(LEFT_OUT)]).fetchall()}


def sequences(at: Cursor[Any]) -> dict[str, int | None]:
    return dict(at.execute(SEQUENCES).fetchall())


def migrations() -> list[str]:
    return sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())


def differing(others: list[str]) -> str:
    return ", ".join(sorted(set(others) ^ set(migrations()))[:5])


def listed(names: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece


def age(described: Description) -> float:
    """Return how many hours ago the backup was taken."""
    return (timezone.now() - datetime.fromisoformat(described.taken_at)).total_seconds() / 3600

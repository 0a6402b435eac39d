"""Rights of Berth's parts in the database: what each may do with which table, if it has an account of its own.

An account is named for the tables' owner and its part: of the owner `berth`, web connects as `berth_web`. `manage.py
migrate` grants what stands here to those accounts that are there, and takes away all else. Without such accounts all
parts connect as the owner.

Nobody but the owner creates, alters, truncates or drops a table. What has to change tables while Berth runs, or rows
that no part may change, is done by functions and triggers that act as the owner.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from django.core.management import CommandError
from django.db import connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg import sql

TABLE = "django_migrations"  # Berth's tables have the owner of this one
PARTS = ("web", "worker", "watcher", "collector", "ssh-jump")
VERBS = {"S": "SELECT", "I": "INSERT", "U": "UPDATE", "D": "DELETE"}
# S: read, I: insert, U: update, D: delete. `+a,b`: update these columns alone. To lock a row takes such a right, too.
# "*": all tables that are not named. Who deletes a row deletes what refers to it: tests/portal/test_rights.py.
RIGHTS: dict[str, dict[str, str]] = {
    part: dict(line.split() for line in lines.strip().splitlines())
    for part, lines in {
        # Speaks with everybody, so it cannot hide what it did, nor take what only other parts use.
        "web": """
            *                          SIUD
            vitals_release             S
            accounts_auditentry        SI
            auth_permission            S
            clusters_partpod           SD
            clusters_watcher           SD
            django_admin_log           SID
            django_content_type        S
            django_migrations          S
            django_q_ormq              SI
            django_q_schedule          -
            django_q_task              -
            monitoring_alertpass       SIU
            monitoring_busyday         S
            monitoring_failedstart     SD
            monitoring_figure          SI
            monitoring_nodeload        SD
            monitoring_oomkill         SD
            monitoring_seenpod         SD
            quotas_ledgerentry         SID+microseconds
            storage_storagespan        S
            workloads_logchunk         S
            workloads_logstream        SD
        """,
        # Neither signs anybody in: what people sign in with is web's. Who left may lose it here.
        "worker": """
            *                          SIUD
            vitals_release             S
            account_emailaddress       -
            account_emailconfirmation  -
            accounts_apitoken          S+revoked_at
            accounts_auditentry        SI
            accounts_devicecode        -
            accounts_idempotentanswer  -
            accounts_signinfailure     -
            accounts_socketticket      -
            accounts_sshkey            SD+id
            accounts_tenant            SIU
            accounts_user              SIU
            django_admin_log           -
            django_content_type        S
            django_migrations          S
            django_session             SD+expire_date
            mfa_authenticator          S
            socialaccount_socialaccount SIU
            socialaccount_socialapp    -
            socialaccount_socialtoken  -
            storage_storagespan        S
            workloads_logchunk         S
            workloads_logstream        S
        """,
        "watcher": """
            *                          SIUD
            vitals_release             S
            account_emailaddress       -
            account_emailconfirmation  -
            accounts_apitoken          S
            accounts_auditentry        SI
            accounts_devicecode        -
            accounts_idempotentanswer  -
            accounts_signinfailure     -
            accounts_socketticket      -
            accounts_sshkey            S
            accounts_tenant            SU
            accounts_user              SU
            django_admin_log           -
            django_content_type        S
            django_migrations          S
            django_q_ormq              SI
            django_q_schedule          -
            django_q_task              -
            django_session             SD+expire_date
            mfa_authenticator          -
            socialaccount_socialaccount -
            socialaccount_socialapp    -
            socialaccount_socialtoken  -
            storage_storagespan        S
            workloads_logchunk         S
            workloads_logstream        S
        """,
        "collector": """
            accounts_tenant            S
            clusters_cluster           S
            clusters_installation      S
            django_migrations          S
            jobs_job                   S
            jobs_part                  SU
            jobs_series                SIU
            vitals_figure              SIU
            vitals_process             SIU
            vitals_release             S
            workloads_logchunk         SIUD
            workloads_loglimit         S
            workloads_logstream        SIUD
            workspaces_workspace       S
        """,
        "ssh-jump": """
            accounts_auditentry        SI
            accounts_membership        S
            accounts_signinfailure     SID+username
            accounts_sshkey            SU
            accounts_tenant            S+id
            accounts_user              S+id
            clusters_cluster           S
            clusters_installation      SU
            clusters_node              S
            django_content_type        S
            django_migrations          S
            quotas_claim               S
            quotas_pool                S
            quotas_tenantlimit         S
            storage_filessession       SIU
            storage_mount              S
            storage_snapshot           S
            storage_volume             SU
            vitals_figure              SIU
            vitals_process             SIU
            vitals_release             S
            workloads_logstream        S
            workspaces_hostkey         S
            workspaces_share           S
            workspaces_workspace       S
            workspaces_workspacesecret S
        """,
    }.items()
}
# Functions that act as the owner.
FUNCTIONS = {
    "worker": ("accounts_trail_make_months", "accounts_trail_drop_before"),
    "collector": ("workloads_logs_make_day", "workloads_logs_drop_days", "workloads_logs_rewrite_day"),
}

# What the owner owns: others' tables in the same schema are none of Berth's. Rows of partitions are reached through the
# whole, so nobody has a right to them.
FOUND = """
SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, quote_ident(relname), relname, relispartition
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
AND pg_get_userbyid(relowner) = current_user
UNION ALL
SELECT 'ROUTINE', oid::regprocedure::text, proname, false
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND pg_get_userbyid(proowner) = current_user
ORDER BY 1, 2
"""
CELL = re.compile(r"-|(?P<verbs>[SIUD]+)(\+(?P<columns>[a-z_,]+))?")


@dataclass(frozen=True)
class Right:
    """Right of a part to one table."""

    verbs: tuple[str, ...]
    columns: tuple[str, ...] = ()  # that it may update, where it may not update the others


@dataclass(frozen=True)
class Owned:
    """Object in the database that is the owner's; `shown` is its name as SQL."""

    kind: str
    shown: str
    name: str
    is_partition: bool


def right_of(part: str, table: str) -> Right:
    """Return what the part may do with the table."""
    rights = RIGHTS[part]
    found = CELL.fullmatch(rights.get(table, rights.get("*", "-")))
    assert found is not None, f"{part}, {table}: no such right"
    columns = (found["columns"] or "").split(",") if found["columns"] else ()
    return Right(tuple(VERBS[letter] for letter in found["verbs"] or ""), tuple(columns))


def account_of(owner: str, part: str) -> str:
    return f"{owner}_{part.replace('-', '_')}"


def grant(database: str = "default") -> list[str]:
    """Give each account of a part that exists its rights, and no others. Return the names of these accounts.

    Raise a CommandError if this account is not the tables' owner, or a part could still make tables of its own.
    """
    with transaction.atomic(using=database), connections[database].cursor() as cursor:
        cursor.execute("SELECT current_user, current_schema(), current_database()")
        owner, schema, name = cursor.fetchone()
        accounts = {account_of(owner, part): part for part in PARTS}
        _require_owner(cursor, owner)
        there = _that_exist(cursor, list(accounts))
        if not there:
            return []
        cursor.execute(FOUND)
        objects = [Owned(*row) for row in cursor.fetchall()]
        for statement in _closed(schema, name):
            cursor.execute(statement)
        for account in there:
            for statement in _granted(accounts[account], account, schema, objects):
                cursor.execute(statement)
        _require_closed(cursor, schema, there)
    return there


def _that_exist(cursor: CursorWrapper, accounts: list[str]) -> list[str]:
    cursor.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) ORDER BY 1", [accounts])
    return [account for (account,) in cursor.fetchall()]


def _require_owner(cursor: CursorWrapper, account: str) -> None:
    """Raise a CommandError if another account owns the tables, and parts have accounts that are named for it."""
    cursor.execute(
        "SELECT tableowner FROM pg_tables WHERE schemaname = current_schema() AND tablename = %s", [TABLE]
    )
    (owner,) = cursor.fetchone() or (account,)
    named = [account_of(owner, part) for part in PARTS] if owner != account else []
    if there := _that_exist(cursor, named):
        raise CommandError(
            f"{account} does not own Berth's tables, so it cannot give {', '.join(there)} their rights. Run migrate as "
            f"their owner, {owner}: set DATABASE_URL to that account."
        )


def _require_closed(cursor: CursorWrapper, schema: str, accounts: list[str]) -> None:
    """Raise a CommandError if an account can make tables in the schema: they could stand in for Berth's."""
    cursor.execute(
        "SELECT one FROM unnest(%s::text[]) AS one WHERE has_schema_privilege(one, %s, 'CREATE') ORDER BY 1",
        [accounts, schema],
    )
    if still := ", ".join(account for (account,) in cursor.fetchall()):
        raise CommandError(
            f"{still} can create tables in the schema {schema}, and only its owner can take that away. As that owner "
            f"or as a superuser, run: REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {still}; then run migrate again. "
            "If they are superusers, or members of a role with that right, take that away."
        )


def _closed(schema: str, database: str) -> list[sql.Composed]:
    """Statements that take away what PostgreSQL gives everybody: tables of their own could stand in for Berth's."""
    return [
        sql.SQL("REVOKE CREATE ON SCHEMA {} FROM PUBLIC").format(sql.Identifier(schema)),
        sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database)),
    ]


def _granted(part: str, account: str, schema: str, objects: list[Owned]) -> Iterator[sql.Composed]:
    """Yield statements that take all rights from an account, and give it those of its part."""
    to, space = sql.Identifier(account), sql.Identifier(schema)
    yield sql.SQL("REVOKE ALL ON SCHEMA {} FROM {}").format(space, to)
    yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(space, to)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for one in objects:
        alike[one.kind, tuple(_allowed(part, one))].append(one.shown)
    for (kind, allowed), shown in alike.items():
        things = sql.SQL(f"{kind} {', '.join(shown)}")
        yield sql.SQL("REVOKE ALL ON {} FROM {}").format(things, to)
        if allowed:
            yield sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(", ".join(allowed)), things, to)


def _allowed(part: str, one: Owned) -> Iterator[str]:
    """Yield what the part may do, as SQL."""
    if one.kind == "SEQUENCE":  # numbers of new rows: who may use it can skip some, and nothing else
        yield "USAGE"
    elif one.kind == "ROUTINE":
        yield from ["EXECUTE"] if one.name in FUNCTIONS.get(part, ()) else []
    elif not one.is_partition:
        right = right_of(part, one.name)
        yield from right.verbs
        if right.columns:
            yield f"UPDATE ({', '.join(right.columns)})"

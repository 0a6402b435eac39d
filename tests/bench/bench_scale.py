"""Rows and idle CPU of a large installation: copies of a workspace and of a job that really ran (played pods)"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import sql

from tests.bench import Figure
from tests.bench.helpers.parts import CPU_NODES, cpu_of, memory_mib, processes_of, spent, trial
from tests.e2e.stack import Client, Stack, until

JOBS = 20  # that really run
JOB_COPIES, WORKSPACE_COPIES = 20_000, 5_000
SECONDS, SETTLING_SECONDS = 30, 10
MUCH = 100  # rows a second
IMAGE = """
from workloads.models import Image
Image.objects.create(slug="ends", name="Ends", reference="devcluster.local/simulated-vectoradd:passes")
"""
SIZE = {"pool": "cpu", "cpu": 1, "memory_mib": 1024}
# Rows of a job and of a workspace, by table. A table comes after those that its rows refer to.
OF_A_JOB = {
    "jobs_job": "id = %(id)s",
    "jobs_jobsecret": "job_id = %(id)s",
    "jobs_part": "job_id = %(id)s",
    "jobs_attempt": "part_id IN (SELECT id FROM jobs_part WHERE job_id = %(id)s)",
    "jobs_event": "job_id = %(id)s",
}
OF_A_WORKSPACE = {
    "workspaces_workspace": "id = %(id)s",
    "workspaces_workspacesecret": "workspace_id = %(id)s",
    "workspaces_event": "workspace_id = %(id)s",
}
OF_BOTH = {
    "storage_mount": "holder = %(id)s",
    "quotas_claim": "holder_id = %(id)s",
    "quotas_ledgerentry": "claim_id IN (SELECT id FROM quotas_claim WHERE holder_id = %(id)s)",
    "accounts_auditentry": "target_id = %(text)s",
    "accounts_notice": "subject_id = %(id)s",
    "workloads_logstream": "holder_id = %(id)s",
    "workloads_logchunk": "stream_id IN (SELECT id FROM workloads_logstream WHERE holder_id = %(id)s)",
}
COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type,
    (SELECT confrelid::regclass::text FROM pg_constraint
     WHERE contype = 'f' AND conrelid = a.attrelid AND conkey = ARRAY[a.attnum] LIMIT 1) AS refers
FROM pg_attribute a WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum
"""
APART = 10**10  # between the numbers of copies


def measure() -> Iterator[Figure]:
    with trial(CPU_NODES) as stack:
        stack.manage("shell", "-c", IMAGE)
        api = stack.client(stack.token("alice", "read", "workspaces", "jobs"))
        workspace = _launch(stack, api)
        yield from _idle(stack, "nothing but a workspace")
        yield from _jobs(stack, api)
        job = str(stack.rows("SELECT id FROM jobs_job WHERE phase = 'succeeded' LIMIT 1")[0]["id"])
        yield from _copy(stack, "a job", job, OF_A_JOB | OF_BOTH, JOB_COPIES)
        yield from _copy(stack, "a workspace", workspace, OF_A_WORKSPACE | OF_BOTH, WORKSPACE_COPIES)
        yield from _idle(stack, f"{WORKSPACE_COPIES} workspaces run, {JOB_COPIES} jobs are over")


def _launch(stack: Stack, api: Client) -> str:
    body = {"tenant": "demo", "name": "first", "image": "jupyter", **SIZE}
    status, made = api("POST", "workspaces/", body)
    assert status == 201, made
    query = "SELECT 1 FROM workspaces_workspace WHERE phase = 'ready'"
    until("it is ready", partial(stack.rows, query), 120)
    return str(made["id"])


def _jobs(stack: Stack, api: Client) -> Iterator[Figure]:
    """Let jobs run to their end; yield what one of them took of each part."""
    written = "SELECT pg_current_wal_lsn() - '0/0' AS bytes, xact_commit FROM pg_stat_database WHERE datname = 'berth'"
    pids = processes_of(stack)
    (before,), cpu = stack.rows(written), cpu_of(pids)

    def submit(number: int) -> None:
        body = {"tenant": "demo", "name": f"job-{number}", "image": "ends", "command": ["true"], **SIZE}
        status, answer = api("POST", "jobs/", body)
        assert status == 201, answer

    with ThreadPoolExecutor(4) as people:
        list(people.map(submit, range(JOBS)))
    over = "SELECT count(*) AS n FROM jobs_job WHERE phase = 'succeeded'"
    until("all are over", lambda: stack.rows(over)[0]["n"] == JOBS, 240, 0.5)
    time.sleep(SETTLING_SECONDS)
    for part, seconds in spent(cpu, cpu_of(pids)).items():
        yield Figure(f"a job: CPU of {part}", seconds / JOBS * 1000, "ms")
    (after,) = stack.rows(written)
    yield Figure("a job: write-ahead log", float(after["bytes"] - before["bytes"]) / JOBS / 1024, "KiB")
    yield Figure("a job: transactions", (after["xact_commit"] - before["xact_commit"]) / JOBS, "")


def _idle(stack: Stack, what: str) -> Iterator[Figure]:
    time.sleep(SETTLING_SECONDS)
    pids = processes_of(stack)
    before, scanned, began = cpu_of(pids), _scanned(stack), time.monotonic()
    time.sleep(SECONDS)
    took = time.monotonic() - began
    for table, rows in _scanned(stack).items():
        if (a_second := (rows - scanned.get(table, 0)) / took) > MUCH:
            yield Figure(f"{what}: {table}, read from end to end", a_second, "rows a second")
    for part, seconds in spent(before, cpu_of(pids)).items():
        mib = sum(memory_mib(pid) for pid in pids[part][:1])
        yield Figure(f"{what}: {part}", seconds / took * 100, f"% of a core, {mib:.0f} MiB")
    (open_ones,) = stack.rows("SELECT count(*) AS n FROM pg_stat_activity WHERE datname = 'berth'")
    yield Figure(f"{what}: connections", open_ones["n"], "")


def _scanned(stack: Stack) -> dict[str, int]:
    """Rows that sequential scans have read so far, by table: what grows with the installation shows here."""
    rows = stack.rows("SELECT relname, seq_tup_read FROM pg_stat_user_tables")
    return {row["relname"]: row["seq_tup_read"] for row in rows}


def _copy(stack: Stack, what: str, of: str, tables: dict[str, str], count: int) -> Iterator[Figure]:
    """Copy all rows of an object, with ids of their own. Yield the bytes that a copy takes, indexes included."""
    values: dict[str, Any] = {"id": of, "text": of, "count": count, "apart": APART}
    with stack.database(read_only=False) as database:
        ids = {of}
        for table, condition in tables.items():
            for row in database.execute(f"SELECT * FROM {table} WHERE {condition}".encode(), values):
                ids |= {str(row[name]) for name in ("id", "run") if isinstance(row.get(name), UUID)}
        sizes = {table: _size(database, table) for table in tables}
        for table, condition in tables.items():
            columns = database.execute(COLUMNS, [table]).fetchall()
            picked = [_picked(table, column, tables) for column in columns]
            names = sql.SQL(", ").join(sql.Identifier(column["name"]) for column in columns)
            statement = sql.SQL(
                "INSERT INTO {table} ({names}) SELECT {picked} FROM {table}, generate_series(1, %(count)s) n WHERE "
            ).format(table=sql.Identifier(table), names=names, picked=sql.SQL(", ").join(picked))
            database.execute(statement + sql.SQL(condition), values | {"ids": sorted(ids)})
        database.execute("ANALYZE")
        grown = {table: (_size(database, table) - size) / count for table, size in sizes.items()}
    for table, size in grown.items():
        yield Figure(f"{what}: {table}", size, "bytes")
    yield Figure(f"{what}: all of its rows", sum(grown.values()) / 1024, "KiB")


def _picked(table: str, column: dict[str, Any], tables: Sequence[str] | dict[str, str]) -> sql.Composable:
    """Return what stands in a column of a copy."""
    name, identifier = column["name"], sql.Identifier(column["name"])
    if column["type"] == "uuid":
        return sql.SQL(
            "CASE WHEN {c}::text = ANY(%(ids)s) THEN md5({c}::text || n)::uuid ELSE {c} END"
        ).format(c=identifier)
    if column["type"] == "bigint" and (name in ("id", "stream_id") or column["refers"] in tables):
        return sql.SQL("{} + n * %(apart)s::bigint").format(identifier)
    unique = {("workspaces_workspace", "name"), ("jobs_job", "name"), ("workloads_logstream", "pod_uid")}
    if (table, name) in unique or (table, name) == ("accounts_notice", "key"):
        return sql.SQL("left({}, 24) || n").format(identifier)
    return identifier


def _size(database: Any, table: str) -> int:
    """Return the bytes of a table with its indexes and partitions."""
    query = "SELECT sum(pg_total_relation_size(relid))::bigint AS size FROM pg_partition_tree(%s)"
    found = database.execute(query, [table]).fetchone()["size"]
    if found is None:  # no partitions
        found = database.execute("SELECT pg_total_relation_size(%s) AS size", [table]).fetchone()["size"]
    return int(found)

"""Parts of hostile requests, and the rows that none of them may add."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection

from accounts.models import APIToken, SSHKey, Tenant
from jobs.models import Job
from monitoring.models import AlertRoute, PostMortemNote
from storage.models import Connection, FilesSession, Snapshot, Volume
from workspaces.models import Workspace

GOOD = {"tenant": "demo", "name": "exp-1", "image": "jupyter", "flavor": "a100-1"}


def of(*values: Any) -> tuple[Any, ...]:
    """Return the values, of any type."""
    return values


def job(**changes: Any) -> tuple[str, str, Any]:
    return "POST", "jobs/", GOOD | {"command": ["train"]} | changes


def everything() -> tuple[int, ...]:
    """Return the number of rows of each kind that is asked for here."""
    kinds = (
        *(Workspace, Job, SSHKey, Tenant, APIToken, Volume, Snapshot, Connection, FilesSession),
        *(AlertRoute, PostMortemNote),
    )
    tables = [kind._meta.db_table for kind in kinds]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables))
        return tuple(cursor.fetchone())


def raw(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode("utf-8", "surrogatepass")

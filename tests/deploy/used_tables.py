"""What Berth's parts do with which tables, recorded while tests run; or refused, where each part has an account.

`BERTH_RECORD_TABLES=FILE pytest ...` adds to the file what the tests of this run did; tests/portal/used_tables.json
holds what was recorded, tests/portal/test_rights.py compares it with portal/management/rights.py. With
`BERTH_AS_PARTS=1`, each statement is sent with the account of the part whose code sends it; a test's own statements
with the owner's.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from portal.management.rights import account_of

REPOSITORY = Path(__file__).parents[2]
# The outermost of these modules tells the part. What has no process of its own among the callers tells nothing.
CALLERS = {
    "workspaces/ssh_jump/": "ssh-jump",
    "workloads/logs/collector.py": "collector",
    "workloads/logs/following.py": "collector",
    "workloads/logs/store.py": "collector",
    "workloads/logs/retention.py": "collector",
    "clusters/watch/": "watcher",
    "workspaces/runs/reconciler.py": "watcher",
    "workspaces/runs/reconcile.py": "watcher",
    "storage/cluster/keeper.py": "watcher",
    "storage/cluster/look.py": "watcher",
    "jobs/cluster/keeper.py": "watcher",
    "jobs/cluster/look.py": "watcher",
    "monitoring/alerts/sending.py": "worker",
    "monitoring/alerts/raising.py": "worker",
    "monitoring/figures/thinning.py": "worker",
    "monitoring/drift/looks.py": "worker",
    "monitoring/idle/looking.py": "worker",
    "monitoring/post_mortems/filling.py": "worker",
    "monitoring/validation/steps.py": "worker",
    "accounts/trail/keeping.py": "worker",
    "clusters/errands/running.py": "worker",
}
WEB = ("django/core/handlers/base.py", "channels/consumer.py")
TARGETS = {
    "INSERT": re.compile(r"\bINSERT INTO \"?(\w+)"),
    "UPDATE": re.compile(r"\bUPDATE (?:ONLY )?\"?(\w+)\"?(?: (?:AS )?\w+)? SET"),
    "DELETE": re.compile(r"\bDELETE FROM (?:ONLY )?\"?(\w+)"),
}
LOCKED = re.compile(r"\bFOR (?:NO KEY )?(?:UPDATE|KEY SHARE|SHARE)\b(?: OF ([\w\", ]+))?")
WORD = re.compile(r"\w+")


def uses(statement: str, tables: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each table of a statement with what is done with it; a lock is an UPDATE of some column."""
    named = set(WORD.findall(statement)) & tables
    found = {verb: set(pattern.findall(statement)) & tables for verb, pattern in TARGETS.items()}
    yield from ((verb, table) for verb, those in found.items() for table in those)
    conflict = "ON CONFLICT" in statement
    if conflict and "DO UPDATE" in statement:
        yield from (("UPDATE", table) for table in found["INSERT"])
    silent = set() if conflict or "RETURNING" in statement else found["INSERT"]
    yield from (("SELECT", table) for table in named - silent)
    for of in LOCKED.findall(statement):
        yield from (("LOCK", table) for table in (set(WORD.findall(of)) & tables if of else named))


def part_that_asks() -> str:
    """Return the part whose code makes the statement; empty if a test makes it by itself, or nobody can tell."""
    part = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith(WEB):
            part = "web"
        elif name.endswith("django/dispatch/dispatcher.py"):
            from clusters.signals import tick

            part = "watcher" if frame.f_locals.get("self") is tick else part
        elif name.startswith(f"{REPOSITORY}/"):
            short = name.removeprefix(f"{REPOSITORY}/")
            if short.endswith("/tasks.py"):
                part = "worker"
            part = next((who for start, who in CALLERS.items() if short.startswith(start)), part)
        frame = frame.f_back
    return part


class Recorder:
    def __init__(self, path: Path | None, *, as_parts: bool) -> None:
        self._path, self._as_parts = path, as_parts
        there = path is not None and path.exists()
        self.used: dict[str, dict[str, str]] = json.loads(path.read_text()) if path and there else {}
        self._seen: set[tuple[str, str]] = set()
        self._tables: set[str] = set()

    def __call__(
        self, execute: Callable[..., Any], statement: Any, values: Any, many: bool, context: Any
    ) -> Any:
        part = part_that_asks()
        text = statement if isinstance(statement, str) else ""
        if part and (part, text) not in self._seen:
            self._seen.add((part, text))
            test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
            for verb, table in uses(text, self._tables or self._all()):
                self.used.setdefault(part, {}).setdefault(f"{verb} {table}", test)
        if not self._as_parts:
            return execute(statement, values, many, context)
        return self._as(part, lambda: execute(statement, values, many, context), context["connection"])

    def _all(self) -> set[str]:
        from django.apps import apps

        models = apps.get_models(include_auto_created=True)
        self._tables = {model._meta.db_table for model in models} | {"django_migrations"}
        return self._tables

    def _as(self, part: str, act: Callable[[], Any], connection: Any) -> Any:
        """Act with the part's account; a rollback may have changed it since the last time."""
        from psycopg.pq import TransactionStatus

        raw = connection.connection
        if raw is not None and raw.info.transaction_status != TransactionStatus.INERROR:
            owner = connection.settings_dict["USER"]
            raw.execute(f'SET ROLE "{account_of(owner, part)}"' if part else "RESET ROLE")
        return act()

    def save(self) -> None:
        if self._path is not None:
            ordered = {part: dict(sorted(uses.items())) for part, uses in sorted(self.used.items())}
            self._path.write_text(json.dumps(ordered, indent=1) + "\n")


def record(path: Path | None, *, as_parts: bool) -> Recorder:
    """Begin to record, on each connection that is made."""
    from django.db.backends.signals import connection_created

    recorder = Recorder(path, as_parts=as_parts)

    def connected(connection: Any, **_: Any) -> None:
        if recorder not in connection.execute_wrappers:
            connection.execute_wrappers.append(recorder)

    connection_created.connect(connected, weak=False)
    return recorder

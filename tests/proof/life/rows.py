"""Database rows of a running Berth as records, and the errors in its log."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.stack import Stack
from tests.proof.life.records import Audited, Booking, Claim, Event, Quota, Workspace

WORKSPACES = """
    SELECT w.id::text, t.slug AS tenant, u.username AS owner, w.name, w.desired, w.phase, w.message_code, w.ending,
        w.delete_disk, w.deleted_at, w.ready_at, w.stops_at, w.last_event, w.run::text, w.dirty_since, w.troubles
    FROM workspaces_workspace w JOIN accounts_tenant t ON t.id = w.tenant_id JOIN accounts_user u ON u.id = w.owner_id
"""
EVENTS = """
    SELECT workspace_id::text AS workspace, number, run::text, at, step, level, code, data
    FROM workspaces_event ORDER BY workspace_id, number
"""
CLAIMS = """
    SELECT c.id::text, p.slug AS pool, t.slug AS tenant, c.holder_id::text AS holder, c.units, c.state, c.created_at,
        c.admitted_at, c.released_at, c.reason_code AS reason, u.username AS user, p.units_per_gpu,
        c.booking_id::text AS booking, c.reclaim_at
    FROM quotas_claim c JOIN quotas_pool p ON p.id = c.pool_id JOIN accounts_tenant t ON t.id = c.tenant_id
        JOIN accounts_user u ON u.id = c.user_id
"""
BOOKINGS = """
    SELECT b.id::text, p.slug AS pool, t.slug AS tenant, b.starts_at, b.ends_at, b.places, b.units_each, b.created_at,
        b.cancelled_at
    FROM quotas_booking b JOIN quotas_pool p ON p.id = b.pool_id JOIN accounts_tenant t ON t.id = b.tenant_id
"""
AUDIT = """
    SELECT at, actor_name AS who, action, target_id AS target, data
    FROM accounts_auditentry WHERE outcome = 'done' ORDER BY id
"""
SSH_KEYS = """
    SELECT u.username AS who, k.public_key AS key FROM accounts_sshkey k JOIN accounts_user u ON u.id = k.user_id
"""
QUOTAS = """
    SELECT q.id::text, t.slug AS tenant, p.slug AS pool, t.id::text AS tenant_id, p.id::text AS pool_id,
        q.nominal_gpus, q.borrowing_limit_gpus, p.units_per_gpu, l.id::text AS limit_id, b.id::text AS budget_id
    FROM quotas_quota q JOIN accounts_tenant t ON t.id = q.tenant_id JOIN quotas_pool p ON p.id = q.pool_id
        JOIN quotas_tenantlimit l ON l.tenant_id = t.id JOIN quotas_budget b ON b.tenant_id = t.id
    ORDER BY t.slug, p.slug
"""
# An error in PostgreSQL's log, with the lines of detail that follow it.
ERROR = re.compile(
    r"^[^\t\n]*\bERROR: .*(?:\n(?:\t|[^\t\n]*\] (?:DETAIL|HINT|QUERY|CONTEXT|STATEMENT): ).*)*", re.MULTILINE
)


@dataclass(frozen=True)
class Rows:
    stack: Stack

    def workspaces(self) -> dict[str, Workspace]:
        return {row["id"]: Workspace(**row) for row in self.stack.rows(WORKSPACES)}

    def events(self) -> dict[str, Sequence[Event]]:
        found = defaultdict[str, list[Event]](list)
        for row in self.stack.rows(EVENTS):
            found[row["workspace"]].append(Event(**row))
        return dict(found)

    def claims(self) -> list[Claim]:
        return [Claim(**row) for row in self.stack.rows(CLAIMS)]

    def bookings(self) -> list[Booking]:
        return [Booking(**row) for row in self.stack.rows(BOOKINGS)]

    def audit(self) -> list[Audited]:
        return [Audited(**row) for row in self.stack.rows(AUDIT)]

    def ssh_keys(self) -> dict[str, set[str]]:
        found = defaultdict[str, set[str]](set)
        for row in self.stack.rows(SSH_KEYS):
            found[row["who"]].add(row["key"])
        return dict(found)

    def log(self) -> list[str]:
        return errors_in((self.stack.folder / "logs" / "postgres.log").read_text(errors="replace"))

    def quotas(self) -> list[Quota]:
        return [Quota(**row) for row in self.stack.rows(QUOTAS)]


def errors_in(log: str) -> list[str]:
    """Return the errors with their details; for a deadlock, the processes and statements that waited."""
    return ERROR.findall(log)

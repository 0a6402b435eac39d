"""The audit trail as CSV for spreadsheets, row by row: it may be long, and is never held in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from accounts.models import AuditEntry
from accounts.spreadsheets import line
from accounts.trail.trail import KEYSET

COLUMNS = ("at", "actor", "outcome", "action", "tenant", "target_kind", "target_id", "address", "data")
ROWS_AT_ONCE = 1000
LONGEST_QUERY_SECONDS = 30


async def csv_parts(entries: QuerySet[AuditEntry]) -> AsyncIterator[list[str]]:
    """Yield lines of CSV, newest first, in pages of its own, so that no query lasts as long as the reader takes."""
    entries = entries.order_by(*KEYSET)
    yield [line(COLUMNS)]
    beyond = Q()
    while True:
        rows = await _read(entries.filter(beyond)[:ROWS_AT_ONCE])
        if rows:
            yield [line(_cells(row)) for row in rows]
        if len(rows) < ROWS_AT_ONCE:
            return
        last = rows[-1]
        beyond = Q(at__lt=last.at) | Q(at=last.at, pk__lt=last.pk)


@sync_to_async
def _read(entries: QuerySet[AuditEntry]) -> list[AuditEntry]:
    """Return the entries. Raise OperationalError (QueryCanceled) if a rare search looks through too many others."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {int(LONGEST_QUERY_SECONDS * 1000)}")
        return list(entries)


def _cells(entry: AuditEntry) -> tuple[str, ...]:
    return (
        entry.at.isoformat(),
        entry.actor_name,
        entry.outcome,
        entry.action,
        entry.tenant.slug if entry.tenant else "",
        entry.target_kind,
        entry.target_id,
        entry.address or "",
        json.dumps(entry.data, ensure_ascii=False, sort_keys=True),
    )

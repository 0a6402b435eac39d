"""Marks that ask for a look at a workspace: one statement for all, which wakes the process that reconciles.

A mark is part of the caller's transaction and outlives every crash: only a look that began after it clears it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

CHANNEL = "berth_looks"
# Rows are locked in the order of their keys (accounts/locks.py), before a look can settle them.
MARK = """
WITH chosen AS (
    SELECT id FROM workspaces_workspace WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE workspaces_workspace w
    SET dirty_marks = dirty_marks + 1, dirty_since = COALESCE(dirty_since, %(now)s)
    FROM chosen, quotas_pool p WHERE w.id = chosen.id AND p.id = w.pool_id
    RETURNING p.cluster_id, w.id
)
SELECT pg_notify(%(channel)s, cluster_id || ' ' || %(urgent)s || ' ' || id) FROM marked
"""


def reconcile(ids: Iterable[UUID], *, urgent: bool = False) -> None:
    """Ask for a look at each: something about it changed. `urgent`: a person waits for it."""
    if ids := list(ids):
        values: dict[str, Any] = {
            "ids": ids,
            "now": timezone.now(),
            "channel": CHANNEL,
            "urgent": "1" if urgent else "0",
        }
        with connection.cursor() as cursor:
            cursor.execute(MARK, values)

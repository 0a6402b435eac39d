"""Marks that ask for a look at a volume. A mark is part of the caller's transaction and outlives every crash."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import connection
from django.utils import timezone

CHANNEL = "berth_volumes"
MARK = """
WITH chosen AS (
    SELECT id FROM storage_volume WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE storage_volume v
    SET dirty_marks = dirty_marks + 1, dirty_since = COALESCE(dirty_since, %(now)s)
    FROM chosen WHERE v.id = chosen.id
    RETURNING v.cluster_id, v.id
)
SELECT pg_notify(%(channel)s, cluster_id || ' ' || id) FROM marked
"""


def look(ids: Iterable[UUID]) -> None:
    """Ask for a look at each: something about it changed."""
    if ids := list(ids):
        with connection.cursor() as cursor:
            cursor.execute(MARK, {"ids": ids, "now": timezone.now(), "channel": CHANNEL})

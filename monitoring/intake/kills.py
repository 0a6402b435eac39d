"""Counts of processes that the kernel ended for memory: kept per pod and container, and never lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection

from monitoring.agent.schema import Report

MOST = 500
MOST_KILLS = 2**31 - 1
UPSERT = """
    INSERT INTO monitoring_oomkill AS kept (cluster_id, node, pod_uid, container, kills, first_at, last_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (cluster_id, pod_uid, container) DO UPDATE
    SET kills = excluded.kills, last_at = excluded.last_at WHERE kept.kills < excluded.kills
"""


def take(cluster_id: UUID, node: str, reports: Sequence[Report], ours: Callable[[float], datetime]) -> None:
    """Store counts that grew, with the time of the report that first had them."""
    found: dict[tuple[str, str], tuple[int, datetime]] = {}
    for report in reports:
        for one in report.get("oom_kills", ()):
            key = one["pod_uid"][:64], one.get("container_id", "")[:64]
            count = min(one["kills"], MOST_KILLS)
            if count > found.get(key, (0, None))[0]:
                found[key] = count, ours(report["taken_at"])
    rows = [
        (cluster_id, node, pod, container, count, at, at)
        for (pod, container), (count, at) in sorted(found.items())[:MOST]
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(UPSERT, rows)

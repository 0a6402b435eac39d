"""Row of a node's agent, read and written with every report of it."""

from __future__ import annotations

import json
from datetime import datetime
from uuid import UUID

from django.db import connection

from monitoring.intake import rows
from monitoring.models import AgentState

OF_NODE = """
    FROM clusters_node AS node
    LEFT JOIN monitoring_agentstate AS row ON row.cluster_id = node.cluster_id AND row.node = node.name
    WHERE node.cluster_id = %s AND node.name = %s
"""
UPDATE = """
    UPDATE monitoring_agentstate SET agent = %s, sequence = %s, taken_at = %s, seen_at = %s, interval_seconds = %s,
        dropped = %s, driver_version = %s, cuda_version = %s, troubles = %s, is_simulated = %s, counts_oom_kills = %s
    WHERE id = %s
"""


def read(cluster_id: UUID, node: str, now: datetime) -> AgentState | None:
    """Return the agent's row, a new one for a first report; None if the node is unknown."""
    for state in rows.read(AgentState, OF_NODE, (cluster_id, node)):
        return state if state.pk else AgentState(cluster_id=cluster_id, node=node, taken_at=now, seen_at=now)
    return None


def write(state: AgentState) -> None:
    if not state.pk:
        state.save()
        return
    columns = (
        state.agent, state.sequence, state.taken_at, state.seen_at, state.interval_seconds, state.dropped,
        state.driver_version, state.cuda_version, json.dumps(state.troubles), state.is_simulated,
        state.counts_oom_kills, state.pk,
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(UPDATE, columns)

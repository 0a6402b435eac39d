"""GPUs of runs, from the tracks of their figures, with the mean of their use. One query."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from workloads.devices import Devices

# The use of a GPU that several runs have at once is nobody's alone: there is a track for each one's share, or none.
SELECT = """
    SELECT run, array_agg(DISTINCT device ORDER BY device),
        sum(used) FILTER (WHERE cardinality(runs) = 1) / nullif(sum(counted) FILTER (WHERE cardinality(runs) = 1), 0)
    FROM unnest(%(runs)s::uuid[]) AS asked (run)
    JOIN monitoring_track AS track ON track.runs @> ARRAY[run] AND device <> ''
    CROSS JOIN LATERAL (
        SELECT sum(use_thousandths::float8 * samples) AS used, sum(samples) AS counted
        FROM monitoring_figure WHERE track_id = track.id AND use_thousandths IS NOT NULL
    ) AS figures
    GROUP BY run
"""


def devices_of(runs: Sequence[UUID]) -> dict[UUID, Devices]:
    with connection.cursor() as cursor:
        cursor.execute(SELECT, {"runs": list(runs)})
        return {
            run: Devices(tuple(uuids), None if mean is None else round(min(mean / 1000, 100.0), 1))
            for run, uuids, mean in cursor.fetchall()
        }

"""Problems of a running workspace that come from outside: its node, GPU or storage. The room above finds them.

Events report the begin and the end of a problem, the owner gets a notice, and the workspace's message shows the
problem while it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db.models import Q

from workloads.conditions import Condition, Started, differ
from workspaces import notices
from workspaces.models import Event, Phase, Workspace
from workspaces.state.live import changing
from workspaces.state.story import add_event


class OfWorkspaces:
    """The `workloads.conditions.Runs` of workspaces."""

    def started(self, cluster_id: UUID) -> Started:
        up = Workspace.objects.filter(
            pool__cluster=cluster_id, phase__in=(Phase.STARTING, Phase.READY), ending=""
        )
        rows = up.only("run", "started_at", "units")
        return {row.run: (row.started_at, row.units > 0) for row in rows if row.run}

    def set_conditions(self, cluster_id: UUID, wanted: Mapping[UUID, Sequence[Condition]]) -> None:
        is_ill = Q(pool__cluster=cluster_id) & ~Q(conditions=[])
        rows = Workspace.objects.filter(Q(run__in=wanted) | is_ill, run__isnull=False)
        for row in rows.only("pk", "run", "conditions"):
            has = wanted.get(row.run, ()) if row.run else ()
            if differ(row.conditions, has):
                set_conditions(row.pk, row.run, has)


def set_conditions(workspace_id: UUID, run: UUID | None, wanted: Sequence[Condition]) -> None:
    """Set the current problems of the workspace, if this run is still on."""
    with changing(workspace_id) as row:
        if row.run != run or row.ending:
            return
        had, has = {one["code"] for one in row.conditions}, {one.code: one for one in wanted}
        over = [one for one in row.conditions if one["code"] not in has]
        row.conditions = [asdict(one) for one in has.values()]
        for one in over:
            add_event(row, "ailment_over", what=one["code"], about=one["data"])
        for code, condition in has.items():
            if code not in had:
                notices.notify_condition(add_event(row, code, level=condition.level, **condition.data))
        if row.phase == Phase.READY and row.message_code in {"ready", *has, *had}:
            row.message_code, row.message_data = message(row)


def message(row: Workspace) -> tuple[str, dict[str, Any]]:
    """Return code and data of a ready workspace's message: its most serious problem, else `ready`."""
    gravest_first = sorted(row.conditions, key=lambda one: one["level"] != Event.Level.ERROR)
    return (gravest_first[0]["code"], gravest_first[0]["data"]) if gravest_first else ("ready", {})

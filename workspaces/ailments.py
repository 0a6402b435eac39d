"""What a running workspace suffers from that is not its own: its node, its GPU, its storage. The room above finds it.

An event tells when it begins and when it is over, its person gets a notice, and the workspace's message says it as long
as it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from . import notices
from .live import changing
from .models import Event, Phase, Workspace
from .story import tell


@dataclass(frozen=True)
class Ailment:
    """`code` has its words in clusters.explain; `data` must be of use to its person, and name nobody else."""

    code: str
    data: Mapping[str, Any]
    level: Event.Level


def bring(workspace_id: UUID, run: UUID | None, wanted: Sequence[Ailment]) -> None:
    """Make it what it suffers from, as long as that run is on."""
    with changing(workspace_id) as row:
        if row.run != run or row.ending:
            return
        had, has = {one["code"] for one in row.ailments}, {one.code: one for one in wanted}
        over = [one for one in row.ailments if one["code"] not in has]
        row.ailments = [asdict(one) for one in has.values()]
        for one in over:
            tell(row, "ailment_over", what=one["code"], about=one["data"])
        for code, ailment in has.items():
            if code not in had:
                notices.tell_of_ailment(tell(row, code, level=ailment.level, **ailment.data))
        if row.phase == Phase.READY and row.message_code in {"ready", *has, *had}:
            row.message_code, row.message_data = message(row)


def message(row: Workspace) -> tuple[str, dict[str, Any]]:
    """What a ready one says: the gravest of what it suffers from, if anything."""
    gravest_first = sorted(row.ailments, key=lambda one: one["level"] != Event.Level.ERROR)
    return (gravest_first[0]["code"], gravest_first[0]["data"]) if gravest_first else ("ready", {})

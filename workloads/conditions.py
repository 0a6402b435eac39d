"""Problems of runs that come from outside: of their node, GPU or storage. The room above finds them; each kind of
workload registers here, and shows them to its people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from .models import EventRow

# By run: start time, and whether it has GPUs.
Started = Mapping[UUID | None, tuple[datetime | None, bool]]


@dataclass(frozen=True)
class Condition:
    """A problem. The text of `code` is in clusters.explain; `data` must help the owner and name no other person."""

    code: str
    data: Mapping[str, Any]
    level: EventRow.Level


class Runs(Protocol):
    """Runs of one kind of workload, such as workspaces."""

    def started(self, cluster_id: UUID) -> Started:
        """Return the runs of the cluster that are up or being started."""

    def set_conditions(self, cluster_id: UUID, wanted: Mapping[UUID, Sequence[Condition]]) -> None:
        """Set the present problems of the cluster's runs: those of `wanted`, and none of others."""


_kinds: list[Runs] = []


def register(kind: Runs) -> None:
    _kinds.append(kind)


def started(cluster_id: UUID) -> Started:
    return {run: facts for kind in _kinds for run, facts in kind.started(cluster_id).items()}


def set_conditions(cluster_id: UUID, wanted: Mapping[UUID, Sequence[Condition]]) -> None:
    for kind in _kinds:
        kind.set_conditions(cluster_id, wanted)


def differ(stored: Sequence[Mapping[str, Any]], wanted: Sequence[Condition]) -> bool:
    """Return True if the stored problems, as dicts, are others than these."""
    return {one["code"]: one["data"] for one in stored} != {one.code: one.data for one in wanted}

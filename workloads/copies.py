"""Workspaces and jobs as patterns for others: a job from a workspace, a workspace from a job.

Each room registers its own.
The owner's private settings (environment, repository, secrets, connections) are in it for the owner alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from accounts.access import Actor
from storage import connections
from storage.mounts import mounting
from storage.mounts.mounting import MountWish

from .models import Workload
from .repositories import VARIABLE


@dataclass(frozen=True, kw_only=True)
class Source:
    """Workload to copy settings from, as far as the actor may. `left_out`: volumes that they may not mount."""

    row: Workload
    is_own: bool
    wishes: Sequence[MountWish]
    left_out: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    repository: str = ""  # with its credentials
    secret_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    connections: Sequence[UUID] = ()


Get = Callable[[Actor, UUID], Any]
_rows: dict[str, Get] = {}


def register(kind: str, get: Get) -> None:
    """Register how a row of this kind is found. It raises NotThere if the actor does not see it."""
    _rows[kind] = get


def find(kind: str, actor: Actor, pk: UUID) -> Source:
    """Return the settings of a workspace or job. Raise NotThere if the actor does not see it."""
    row = _rows[kind](actor, pk)
    mounts = mounting.all_of([row.pk]).get(row.pk, [])
    wishes, left_out = mounting.mountable(actor, row.tenant, row.pool.cluster, mounts)
    if row.owner_id != actor.user.pk:
        return Source(row=row, is_own=False, wishes=wishes, left_out=left_out)
    secrets = row.secret.clear_env()
    return Source(
        row=row,
        is_own=True,
        wishes=wishes,
        left_out=left_out,
        env=row.env,
        repository=secrets.pop(VARIABLE, row.repository),
        secret_env=secrets,
        connections=connections.used_by(actor, row.pk),
    )

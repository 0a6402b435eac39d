"""Plain values for tests of the queue: nodes, runs, waiting claims and pools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from quotas.scheduling import (
    Booked,
    Decisions,
    NodeState,
    PoolState,
    Reason,
    Room,
    Run,
    TenantQuota,
    Waiting,
    decide,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEMO, SECOND, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)
OPEN = TenantQuota(used_units=0, limit_units=100)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
numbers = count(10)


def asks(
    gpus: int,
    lasts: timedelta | None = None,
    tenant: UUID = DEMO,
    *,
    cpu: int = 1000,
    memory_mib: int = 1024,
    only: Iterable[str] | None = None,
    **values: Any,
) -> Waiting:
    defaults: dict[str, Any] = {"priority": 0, "place": next(numbers), "lasts": lasts}
    need = Room(gpus, cpu, memory_mib, 1, only=None if only is None else frozenset(only))
    return Waiting(UUID(int=next(numbers)), tenant, need, **(defaults | values))


def runs(
    gpus: int, ends: timedelta | None = None, tenant: UUID = DEMO, *, since: timedelta = HOUR, **values: Any
) -> Run:
    """Return a run that started `since` ago and has to end within `ends`."""
    end = None if ends is None else NOW + ends
    return Run(UUID(int=next(numbers)), tenant, None, Room(gpus, 0, 0, 1), NOW - since, end, **values)


def room(gpus: int, cpu: int = 64_000, memory_mib: int = 262_144, pods: int = 100) -> Room:
    return Room(gpus, cpu, memory_mib, pods)


def node(*there: Run, name: str = "a", of: int = 4) -> NodeState:
    free = whole = replace(room(of), node=name)
    for run in there:
        free -= run.takes
    return NodeState(name, free, whole, there)


def pool(
    nodes: list[NodeState],
    *waiting: Waiting,
    units_per_gpu: int = 1,
    bookings: tuple[Booked, ...] = (),
    is_open: bool = True,
    **quotas: TenantQuota,
) -> PoolState:
    names = {"demo": DEMO, "second": SECOND, "third": THIRD}
    tenants = {tenant: quotas.get(name, OPEN) for name, tenant in names.items()}
    return PoolState(units_per_gpu, tuple(nodes), waiting, tenants, NOW, bookings=bookings, is_open=is_open)


def decided(nodes: list[NodeState], *waiting: Waiting, **values: Any) -> Decisions:
    return decide(pool(nodes, *waiting, **values))


def started(decisions: Decisions) -> list[UUID]:
    return [admitted.claim for admitted in decisions.admitted]


def reasons(decisions: Decisions) -> list[Reason]:
    return [waits.reason for waits in decisions.waits]


def codes(decisions: Decisions) -> list[str]:
    return [reason.code for reason in reasons(decisions)]

"""Who of those who wait in a pool starts now, on which node, and why the others wait. Pure: no database, no clock.

The rules: higher priority first, then first come first served. Whoever is held back by a limit of their own tenant holds
back that tenant's later requests, and nobody else's. Whoever waits for room holds back everybody later in the
pool, or small requests would starve large ones for ever; but not one that no present node could hold even after
all our own runs there have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class Room:
    """Amounts of what a node has and a run takes."""

    units: int = 0
    cpu_millicores: int = 0
    memory_mib: int = 0
    pods: int = 0

    def holds(self, need: Room) -> bool:
        return (
            self.units >= need.units
            and self.cpu_millicores >= need.cpu_millicores
            and self.memory_mib >= need.memory_mib
            and self.pods >= need.pods
        )

    def __sub__(self, other: Room) -> Room:
        return Room(
            self.units - other.units,
            self.cpu_millicores - other.cpu_millicores,
            self.memory_mib - other.memory_mib,
            self.pods - other.pods,
        )


@dataclass(frozen=True)
class NodeState:
    """A healthy node of the pool: free now, and what would be free had all our own runs there ended."""

    name: str
    free: Room
    without_ours: Room


@dataclass(frozen=True)
class Reason:
    code: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    claim: UUID
    tenant: UUID
    need: Room
    priority: int
    place: int
    is_workspace: bool = True
    not_before: datetime | None = None
    # Why it waits, as last decided: kept while it is in back-off.
    reason: Reason = Reason("")


@dataclass(frozen=True)
class Limits:
    """What a tenant may hold over all pools, or does hold; None is no limit."""

    cpu_millicores: int | None = None
    memory_mib: int | None = None
    workspaces: int | None = None


@dataclass(frozen=True)
class TenantQuota:
    """What a tenant holds of the pool and may hold (None: no limit here), and its limits over all pools."""

    used_units: int
    limit_units: int | None
    used: Limits = Limits(0, 0, 0)
    limits: Limits = Limits()


@dataclass(frozen=True)
class PoolState:
    units_per_gpu: int
    nodes: tuple[NodeState, ...]
    waiting: tuple[Waiting, ...]
    tenants: Mapping[UUID, TenantQuota]
    now: datetime


@dataclass(frozen=True)
class Admitted:
    claim: UUID
    node: str


@dataclass(frozen=True)
class Waits:
    claim: UUID
    position: int
    reason: Reason


@dataclass(frozen=True)
class Decisions:
    admitted: tuple[Admitted, ...]
    waits: tuple[Waits, ...]


def in_order(waiting: Iterable[Waiting]) -> list[Waiting]:
    return sorted(waiting, key=lambda claim: (-claim.priority, claim.place))


def decide(state: PoolState) -> Decisions:
    """Walk the queue once from its front."""
    line = _Line(state)
    admitted: list[Admitted] = []
    waits: list[Waits] = []
    for claim in in_order(state.waiting):
        outcome = line.next(claim)
        if isinstance(outcome, Reason):
            waits.append(Waits(claim.claim, len(waits) + 1, outcome))
        else:
            admitted.append(Admitted(claim.claim, outcome.name))
    return Decisions(tuple(admitted), tuple(waits))


def never(claim: Waiting, quota: TenantQuota, units_per_gpu: int) -> Reason | None:
    """Why the tenant's own limits can never let this start, however long it waits."""
    limit = quota.limit_units
    if limit == 0 and claim.need.units:
        return Reason("no_quota")
    if limit is not None and claim.need.units > limit:
        return Reason(
            "above_quota",
            {"gpus": as_gpus(claim.need.units, units_per_gpu), "limit_gpus": as_gpus(limit, units_per_gpu)},
        )
    over = _over(_asks(claim), quota.limits)
    if over:
        name, asked, limit = over
        return Reason(f"above_{name}_limit", {"asked": asked, "limit": limit})
    return None


def as_gpus(units: int, units_per_gpu: int) -> int | float:
    """Units as a number of GPUs for people: 1, 0.25."""
    gpus = Fraction(units, units_per_gpu)
    return gpus.numerator if gpus.denominator == 1 else round(float(gpus), 4)


class _Line:
    """The state of one walk along the queue: what is left, and who holds back whom."""

    def __init__(self, state: PoolState) -> None:
        self.state = state
        self.nodes = {node.name: node for node in state.nodes}
        self.quotas = dict(state.tenants)
        self.held_back: set[UUID] = set()
        self.closed = False

    def next(self, claim: Waiting) -> NodeState | Reason:
        """The node it starts on, or why it waits."""
        quota = self.quotas[claim.tenant]
        if claim.not_before is not None and claim.not_before > self.state.now:
            return claim.reason
        reason = never(claim, quota, self.state.units_per_gpu) or self._no_node_ever(claim)
        if reason:
            return reason
        reason = self._tenant_is_full(claim, quota)
        if reason:
            self.held_back.add(claim.tenant)
            return reason
        if claim.tenant in self.held_back:
            return Reason("behind_own_tenant")
        if self.closed:
            return Reason("behind_others")
        node = self._best_fit(claim.need)
        if node is None:
            self.closed = True
            return shortage(self.nodes.values(), claim.need, self.state.units_per_gpu)
        self._take(claim, quota, node)
        return node

    def _no_node_ever(self, claim: Waiting) -> Reason | None:
        if not self.nodes:
            return Reason("no_node_ready")
        if any(node.without_ours.holds(claim.need) for node in self.nodes.values()):
            return None
        largest = max(node.without_ours.units for node in self.nodes.values())
        return Reason(
            "no_node_large_enough",
            {
                "gpus": as_gpus(claim.need.units, self.state.units_per_gpu),
                "largest_gpus": as_gpus(max(largest, 0), self.state.units_per_gpu),
            },
        )

    def _tenant_is_full(self, claim: Waiting, quota: TenantQuota) -> Reason | None:
        limit = quota.limit_units
        if limit is not None and quota.used_units + claim.need.units > limit:
            per_gpu = self.state.units_per_gpu
            return Reason(
                "quota_full",
                {
                    "gpus": as_gpus(claim.need.units, per_gpu),
                    "used_gpus": as_gpus(quota.used_units, per_gpu),
                    "limit_gpus": as_gpus(limit, per_gpu),
                },
            )
        over = _over(_plus(quota.used, _asks(claim)), quota.limits)
        if over:
            name, together, limit = over
            return Reason(f"{name}_limit_full", {"together": together, "limit": limit})
        return None

    def _best_fit(self, need: Room) -> NodeState | None:
        """Where least is left over: whole nodes stay free for large requests."""
        fitting = [node for node in self.nodes.values() if node.free.holds(need)]
        return min(fitting, key=lambda node: (node.free.units, node.free.cpu_millicores, node.name), default=None)

    def _take(self, claim: Waiting, quota: TenantQuota, node: NodeState) -> None:
        self.nodes[node.name] = replace(node, free=node.free - claim.need)
        self.quotas[claim.tenant] = replace(
            quota, used_units=quota.used_units + claim.need.units, used=_plus(quota.used, _asks(claim))
        )


def shortage(nodes: Iterable[NodeState], need: Room, units_per_gpu: int) -> Reason:
    """What the nodes lack now for a request that none of them holds."""
    free = [node.free for node in nodes]
    units = [max(room.units, 0) for room in free]
    asked, total, largest = (as_gpus(n, units_per_gpu) for n in (need.units, sum(units), max(units, default=0)))
    if sum(units) < need.units:
        return Reason("no_free_gpus", {"gpus": asked, "free_gpus": total})
    if max(units, default=0) < need.units:
        return Reason("fragmented", {"gpus": asked, "free_gpus": total, "largest_free_gpus": largest})
    with_gpus = [room for room in free if room.units >= need.units]
    if all(room.cpu_millicores < need.cpu_millicores for room in with_gpus):
        most = max(room.cpu_millicores for room in with_gpus)
        return Reason("no_free_cpu", {"cpu_millicores": need.cpu_millicores, "free_cpu_millicores": max(most, 0)})
    if all(room.memory_mib < need.memory_mib for room in with_gpus):
        most = max(room.memory_mib for room in with_gpus)
        return Reason("no_free_memory", {"memory_mib": need.memory_mib, "free_memory_mib": max(most, 0)})
    return Reason("no_room_on_one_node")


def _asks(claim: Waiting) -> Limits:
    return Limits(claim.need.cpu_millicores, claim.need.memory_mib, int(claim.is_workspace))


def _plus(one: Limits, other: Limits) -> Limits:
    return Limits(
        (one.cpu_millicores or 0) + (other.cpu_millicores or 0),
        (one.memory_mib or 0) + (other.memory_mib or 0),
        (one.workspaces or 0) + (other.workspaces or 0),
    )


def _over(amounts: Limits, limits: Limits) -> tuple[str, int, int] | None:
    """The first limit that the amounts break: its name, the amount, the limit."""
    for name, amount, limit in (
        ("cpu", amounts.cpu_millicores, limits.cpu_millicores),
        ("memory", amounts.memory_mib, limits.memory_mib),
        ("workspaces", amounts.workspaces, limits.workspaces),
    ):
        if amount is not None and limit is not None and amount > limit:
            return name, amount, limit
    return None

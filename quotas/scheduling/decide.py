"""Who of those who wait in a pool starts now, on which node, and why the others wait. Pure: no database, no clock.

The rules: higher priority first, then first come first served. Whoever is held back by a limit of their own tenant
holds back that tenant's later requests, and nobody else's. Whoever waits for room holds back everybody later in
the pool, or small requests would starve large ones for ever; but not one that no present node could hold even
after all our own runs there have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from uuid import UUID

from .state import (
    BACK_OFF_MOST,
    Admitted,
    Decisions,
    Limits,
    NodeState,
    PoolState,
    Reason,
    Room,
    TenantQuota,
    Waiting,
    Waits,
    as_gpus,
)

AMOUNTS: tuple[tuple[str, Callable[[Room], int]], ...] = (
    ("gpus", attrgetter("units")),
    ("cpu", attrgetter("cpu_millicores")),
    ("memory", attrgetter("memory_mib")),
)


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
    broken = _broken_limit(claim, Limits(), quota.limits)
    if broken:
        name, asked, limit = broken
        return Reason(f"above_{name}_limit", {"asked": asked, "limit": limit})
    return None


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
        if self._backs_off(claim):
            return claim.reason
        reason = self._never(claim) or self._held_back(claim)
        if reason is not None:
            return reason
        node = self._best_fit(claim.need)
        if node is None:
            self.closed = True
            free = [node.free for node in self.nodes.values()]
            return shortage(free, claim.need, self.state.units_per_gpu)
        self._take(claim, node)
        return node

    def _backs_off(self, claim: Waiting) -> bool:
        """One that would last longer than any was written before the clock was set back, and is over."""
        now = self.state.now
        return claim.not_before is not None and now < claim.not_before <= now + BACK_OFF_MOST

    def _never(self, claim: Waiting) -> Reason | None:
        """Why no other request has to wait for this one."""
        if not self.state.is_open:
            return Reason("pool_closed")
        if not self.nodes:
            return Reason("no_node_ready")
        rooms = [node.without_ours for node in self.nodes.values()]
        per_gpu = self.state.units_per_gpu
        return never(claim, self.quotas[claim.tenant], per_gpu) or too_large(rooms, claim.need, per_gpu)

    def _held_back(self, claim: Waiting) -> Reason | None:
        full = self._tenant_is_full(claim, self.quotas[claim.tenant])
        if full is not None:
            self.held_back.add(claim.tenant)
            return full
        if claim.tenant in self.held_back:
            return Reason("behind_own_tenant")
        return Reason("behind_others") if self.closed else None

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
        broken = _broken_limit(claim, quota.used, quota.limits)
        if broken:
            name, together, limit = broken
            return Reason(f"{name}_limit_full", {"together": together, "limit": limit})
        return None

    def _best_fit(self, need: Room) -> NodeState | None:
        """Where least is left over: whole nodes stay free for large requests."""
        fitting = [node for node in self.nodes.values() if node.free.holds(need)]
        return min(
            fitting, key=lambda node: (node.free.units, node.free.cpu_millicores, node.name), default=None
        )

    def _take(self, claim: Waiting, node: NodeState) -> None:
        quota = self.quotas[claim.tenant]
        self.nodes[node.name] = replace(node, free=node.free - claim.need)
        self.quotas[claim.tenant] = replace(
            quota, used_units=quota.used_units + claim.need.units, used=_plus(quota.used, claim)
        )


def shortage(rooms: Sequence[Room], need: Room, units_per_gpu: int) -> Reason:
    """What is lacking now, where some node would do once others have ended."""
    lacking = _first_lacking(rooms, need)
    if lacking.name != "gpus":
        return Reason(f"no_free_{lacking.name}", {"asked": lacking.asked, "free": lacking.most})
    free = sum(max(room.units, 0) for room in rooms)
    data = {"gpus": as_gpus(need.units, units_per_gpu), "free_gpus": as_gpus(free, units_per_gpu)}
    if free < need.units:
        return Reason("no_free_gpus", data)
    return Reason("fragmented", {**data, "largest_free_gpus": as_gpus(lacking.most, units_per_gpu)})


def too_large(rooms: Sequence[Room], need: Room, units_per_gpu: int) -> Reason | None:
    """Why none of these nodes could hold it even then; None when one could."""
    if any(room.holds(need) for room in rooms):
        return None
    lacking = _first_lacking(rooms, need)
    if lacking.name != "gpus":
        return Reason(f"no_node_has_{lacking.name}", {"asked": lacking.asked, "largest": lacking.most})
    return Reason(
        "no_node_has_gpus",
        {"gpus": as_gpus(need.units, units_per_gpu), "largest_gpus": as_gpus(lacking.most, units_per_gpu)},
    )


@dataclass(frozen=True)
class _Lacking:
    name: str
    asked: int
    most: int


def _first_lacking(rooms: Iterable[Room], need: Room) -> _Lacking:
    """Of GPUs, CPU, memory and pods the first that no node has together with those before it."""
    for name, amount in AMOUNTS:
        enough = [room for room in rooms if amount(room) >= amount(need)]
        if not enough:
            most = max((amount(room) for room in rooms), default=0)
            return _Lacking(name, amount(need), max(most, 0))
        rooms = enough
    return _Lacking("pods", need.pods, 0)


def _broken_limit(claim: Waiting, used: Limits, limits: Limits) -> tuple[str, int, int] | None:
    """The first limit that the claim would break: its name, what would then be used, the limit."""
    for name, asked, held, limit in (
        ("cpu", claim.need.cpu_millicores, used.cpu_millicores, limits.cpu_millicores),
        ("memory", claim.need.memory_mib, used.memory_mib, limits.memory_mib),
        ("workspaces", int(claim.is_workspace), used.workspaces, limits.workspaces),
    ):
        together = asked + (held or 0)
        if asked and limit is not None and together > limit:
            return name, together, limit
    return None


def _plus(used: Limits, claim: Waiting) -> Limits:
    return Limits(
        (used.cpu_millicores or 0) + claim.need.cpu_millicores,
        (used.memory_mib or 0) + claim.need.memory_mib,
        (used.workspaces or 0) + int(claim.is_workspace),
    )

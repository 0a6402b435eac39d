"""Forecast of a request that is not made yet, by the rules of a pass. Writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from accounts.errors import Refusal
from accounts.models import Tenant
from quotas import next_end, pool_state, reasons
from quotas.allowed.limits import refuse_what_never_fits
from quotas.forecasts import lengths_of, stretch_of
from quotas.models import Claim, Pool
from quotas.pools.nodes import PoolNodes, nodes_of, takes
from quotas.scheduling import Decisions, PoolState, Waiting, Waits, as_gpus, decide
from quotas.scheduling.forecast import FEW_DRAWS, Confidence, forecast
from quotas.scheduling.why import never
from quotas.sharing import Portion
from quotas.when import When, when

State = Claim.State
# Place at the end of the queue.
LAST_PLACE = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Hypothetical request."""

    tenant: Tenant
    pool: Pool
    portion: Portion
    cpu_millicores: int
    memory_mib: int
    user: Any = None
    max_runtime_minutes: int | None = None

    def claim(self) -> Claim:
        return Claim(
            tenant=self.tenant,
            user=self.user,
            pool=self.pool,
            **asdict(self.portion),
            cpu_millicores=self.cpu_millicores,
            memory_mib=self.memory_mib,
            max_runtime_minutes=self.max_runtime_minutes,
            holder_kind=Claim.Holder.WORKSPACE,
            holder_id=uuid.uuid4(),
            place=LAST_PLACE,
        )


class Estimate(When):
    """Forecast of a hypothetical request."""

    admissible: bool
    starts_now: bool
    position: int | None
    gpus_ahead: float | None
    # It would start on borrowed GPUs, and may be preempted.
    borrows: bool
    reasons: list[dict[str, str]]


class Estimator:
    """Forecasts for one person. Each pool is read once, whatever the number of sizes."""

    def __init__(self, without: UUID | None = None, nodes: Mapping[UUID, PoolNodes] | None = None) -> None:
        """Ignore the waiting claim `without`, which the request would replace. `nodes`: pools already read."""
        self._without = without
        self._states: dict[tuple[UUID, UUID], PoolState] = {}
        self._nodes = dict(nodes or {})

    def look_at(self, these: Iterable[Asked], beside: Iterable[Asked] = ()) -> None:
        """Load in bulk: nodes for all requests, pool states for `beside` and for those of `these` that have room."""
        certainly, these = list(beside), list(these)
        self._see(asked.pool for asked in (*certainly, *these))
        self._read([*certainly, *(asked for asked in these if self._has_room(asked))])

    def starts_now(self, asked: Asked) -> bool:
        self._see([asked.pool])
        # No node has room: no need to read the queue.
        if not self._has_room(asked):
            return False
        claim = asked.claim()
        return all(waits.claim != claim.id for waits in decide(self._state(asked, claim)).waits)

    def estimate(self, asked: Asked, *, with_times: bool = False) -> Estimate:
        """Return whether the request would start now, else its position. `with_times` adds the start forecast."""
        pool, claim = asked.pool, asked.claim()
        state = self._state(asked, claim)
        if not _may_fit(pool, state, state.waiting[-1]):
            try:
                refuse_what_never_fits(claim)
            except Refusal as refusal:
                reason = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
                return _estimate(admissible=False, reasons=[reason])
        decisions = decide(state)
        waits = next((waits for waits in decisions.waits if waits.claim == claim.id), None)
        if waits is None:
            return _estimate(starts_now=True, borrows=_borrows(state, state.waiting[-1]))
        found = _estimate(
            position=waits.position,
            gpus_ahead=as_gpus(waits.units_ahead, pool.units_per_gpu),
            reasons=[reasons.in_queue(waits.reason.code, waits.reason.data, waits.position - 1)],
        )
        if with_times:
            found.update(_times(pool, state, decisions, waits))  # type: ignore[typeddict-item]
            if found["confidence"] == Confidence.UNKNOWN:
                ends = next_end.in_words({claim: waits.reason.code}, state.now)
                found["reasons"][0]["message"] = " ".join([found["reasons"][0]["message"], *ends.values()])
        return found

    def _has_room(self, asked: Asked) -> bool:
        """Return True if a node has room now, regardless of the queue."""
        pool, need = asked.pool, takes(asked.claim())
        if pool.has_gpus != bool(asked.portion.units) or not pool.is_open:
            return False
        return any(node.free.holds(need) for node in self._nodes[pool.id].healthy)

    def _state(self, asked: Asked, claim: Claim) -> PoolState:
        """Return the pool's state with this claim last in the queue, in place of the request it was read with."""
        self._read([asked])
        state = self._states[asked.pool.id, asked.tenant.id]
        return replace(state, waiting=(*state.waiting[:-1], pool_state.as_waiting(claim)))

    def _see(self, pools: Iterable[Pool]) -> None:
        """Load the nodes of these pools, unless known."""
        unknown = {pool.id: pool for pool in pools if pool.id not in self._nodes}
        if unknown:
            self._nodes |= nodes_of(unknown.values())

    def _read(self, these: Iterable[Asked]) -> None:
        """Load the states of these pools, unless known: each with its queue, and one of the requests at the end."""
        unknown = {
            asked.pool: asked for asked in these if (asked.pool.id, asked.tenant.id) not in self._states
        }
        if not unknown:
            return
        self._see(unknown)
        waiting = Claim.objects.filter(pool__in=unknown, state=State.WAITING)
        queues: dict[Pool, list[Any]] = {pool: [] for pool in unknown}
        by_id = {pool.id: queue for pool, queue in queues.items()}
        rows = waiting.exclude(pk=self._without) if self._without else waiting
        for row in rows.values_list(*pool_state.WAITING, named=True):
            by_id[row.pool_id].append(row)
        for pool, asked in unknown.items():
            queues[pool].append(asked.claim())
        for pk, state in pool_state.read_all(queues, self._nodes).items():
            self._states[pk, state.waiting[-1].tenant] = state


def _estimate(**known: Any) -> Estimate:
    nothing = Estimate(
        admissible=True,
        starts_now=False,
        position=None,
        gpus_ahead=None,
        borrows=False,
        reasons=[],
        estimated_start=None,
        estimated_from=None,
        estimated_to=None,
        confidence="unknown",
    )
    return nothing | known  # type: ignore[return-value]


def _may_fit(pool: Pool, state: PoolState, claim: Waiting) -> bool:
    """Check against loaded data. Only if False, the caller runs the full `refuse_what_never_fits`."""
    return (
        pool.is_open
        and pool.has_gpus == bool(claim.need.units)
        and never(claim, state.tenants[claim.tenant], state.units_per_gpu) is None
        and any(node.without_ours.holds(claim.need) for node in state.nodes)
    )


def _borrows(state: PoolState, claim: Waiting) -> bool:
    quota = state.tenants[claim.tenant]
    nominal = quota.nominal_units
    return nominal is not None and bool(claim.need.units) and quota.used_units + claim.need.units > nominal


def _times(pool: Pool, state: PoolState, decisions: Decisions, waits: Waits) -> When:
    """Return the start forecast, from few futures: somebody is typing and waits for it."""
    lengths = lengths_of(pool, state.now)
    found = forecast(after_pass(state, decisions), lengths, stretch_of(pool), FEW_DRAWS)
    return when(found.get(waits.claim), state.now)


def after_pass(state: PoolState, decisions: Decisions) -> PoolState:
    """Return the state with the runs that the pass would preempt on their way out."""
    asked_back = {reclaim.run for reclaim in decisions.reclaims}
    if not asked_back:
        return state
    ends = state.now + state.grace
    nodes = tuple(
        replace(
            node,
            runs=tuple(
                replace(run, reclaim_at=run.reclaim_at or ends) if run.claim in asked_back else run
                for run in node.runs
            ),
        )
        for node in state.nodes
    )
    return replace(state, nodes=nodes)

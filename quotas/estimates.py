"""Forecast of a request that is not made yet, by the rules of a pass. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from accounts.errors import Refusal
from clusters.isolation.deciding import may_launch
from quotas import holders, next_end, pool_state, reasons
from quotas.allowed.limits import refuse_what_never_fits
from quotas.forecasts import lengths_of, stretch_of
from quotas.models import Claim, Pool
from quotas.pools import leases
from quotas.pools.following import Affinities, nodes_to_follow
from quotas.pools.nodes import PoolNodes, nodes_of, takes
from quotas.scheduling import Decisions, Lease, PoolState, Run, Waiting, as_gpus
from quotas.scheduling.decide import decided
from quotas.scheduling.forecast import FEW_DRAWS, Confidence, forecast_from
from quotas.scheduling.gangs import could_hold
from quotas.scheduling.walk import Walk
from quotas.scheduling.why import never
from quotas.sharing import Portion
from quotas.when import When, when

State = Claim.State
# Place at the end of the queue.
LAST_PLACE = 2**63 - 1


def possible_claim(*, portion: Portion, nodes: int = 1, **values: Any) -> Claim:
    """Return an unsaved claim at the end of the queue, with the values of a request that is not made yet.

    With a `holder_id` it is a request of that workspace, whose volumes it must follow. Jobs alone have several nodes.
    """
    kind = Claim.Holder.WORKSPACE if nodes == 1 else Claim.Holder.JOB
    return Claim(**asdict(portion), **values, members=nodes, holder_kind=kind, place=LAST_PLACE)


class Estimate(When):
    """Forecast of a hypothetical request."""

    admissible: bool
    starts_now: bool
    position: int | None
    gpus_ahead: float | None
    # It would start on borrowed GPUs, and may be preempted.
    borrows: bool
    reasons: list[dict[str, str]]


@dataclass(frozen=True)
class Needs:
    """Volumes that a request without a holder would mount in a cluster: where they are, and the leases on them."""

    affinities: Affinities = ()
    leases: tuple[Lease, ...] = ()


class Estimator:
    """Forecasts for one person. Each pool is read once, whatever the number of sizes."""

    def __init__(
        self,
        without: UUID | None = None,
        nodes: Mapping[UUID, PoolNodes] | None = None,
        needs: Mapping[UUID, Needs] | None = None,
    ) -> None:
        """Ignore the waiting claim `without`, which the request would replace. `nodes`: pools already read. `needs`: by
        cluster, those of requests without a holder."""
        self._without = without
        self._needs = needs or {}
        self._states: dict[tuple[UUID, UUID], PoolState] = {}
        self._nodes = dict(nodes or {})
        self._bound: dict[UUID, Affinities] = {}
        self._leased: dict[UUID, tuple[tuple[Lease, ...], tuple[Lease, ...]]] = {}

    def look_at(self, these: Iterable[Claim], beside: Iterable[Claim] = ()) -> None:
        """Load in bulk: nodes for all requests, pool states for `beside` and for those of `these` that have room."""
        certainly, these = list(beside), list(these)
        self._see(claim.pool for claim in (*certainly, *these))
        self._read([*certainly, *filter(self._has_room, these)])

    def starts_now(self, claim: Claim) -> bool:
        self._see([claim.pool])
        if not self._has_room(claim):  # no need to read the queue
            return False
        return claim.id in Walk(self._state(claim)).admitted

    def estimate(self, claim: Claim, *, with_times: bool = False) -> Estimate:
        """Return whether the request would start now, else its position. `with_times` adds the start forecast."""
        pool, state = claim.pool, self._state(claim)
        if not _may_fit(pool, state, state.waiting[-1]):
            try:
                refuse_what_never_fits(claim)
            except Refusal as refusal:
                reason = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
                return _estimate(admissible=False, reasons=[reason])
        walk = Walk(state)
        decisions = decided(walk)
        waits = next((waits for waits in decisions.waits if waits.claim == claim.id), None)
        if waits is None:
            return _estimate(starts_now=True, borrows=_borrows(state, state.waiting[-1]))
        found = _estimate(
            position=waits.position,
            gpus_ahead=as_gpus(waits.units_ahead, pool.units_per_gpu),
            reasons=[reasons.in_queue(waits.reason.code, waits.reason.data, waits.position - 1)],
        )
        if with_times:
            # Few futures: somebody is typing and waits for it.
            later = Walk(after_pass(state, decisions)) if decisions.reclaims else walk
            starts = forecast_from(later, lengths_of(pool, state.now), stretch_of(pool), FEW_DRAWS)
            found.update(when(starts.get(claim.id), state.now))  # type: ignore[typeddict-item]
            if found["confidence"] == Confidence.UNKNOWN:
                ends = next_end.in_words({claim: waits.reason}, state.now)
                found["reasons"][0]["message"] = " ".join([found["reasons"][0]["message"], *ends.values()])
        return found

    def _has_room(self, claim: Claim) -> bool:
        """Return True if a node has room now, regardless of the queue."""
        pool = claim.pool
        if pool.has_gpus != bool(claim.units) or not pool.is_open or not may_launch(pool.cluster):
            return False
        need = takes(claim, only=self._only(claim), extra=pool.beside_gpus(claim.units))
        return could_hold((node.free for node in self._nodes[pool.id].healthy), need, claim.members)

    def _only(self, claim: Claim) -> frozenset[str] | None:
        """Return the nodes that the volumes of the claim's holder let it start on; None: any."""
        holder = _holder_of(claim)
        key = holder or claim.pool.cluster_id
        if key not in self._bound:
            bound = holders.affinities_of([claim]) if holder else {key: self._of(claim).affinities}
            self._bound[key] = bound.get(key, [])
        return nodes_to_follow(self._bound[key], self._nodes[claim.pool_id].nodes)

    def _state(self, claim: Claim) -> PoolState:
        """Return the pool's state with this claim last in the queue, in place of the request it was read with."""
        self._read([claim])
        state = self._states[claim.pool_id, claim.tenant_id]
        leases_asked, held = self._leases(claim)
        asked = pool_state.as_waiting(claim, claim.pool, self._only(claim), leases_asked)
        return replace(state, waiting=(*state.waiting[:-1], asked), leased=state.leased + held)

    def _leases(self, claim: Claim) -> tuple[tuple[Lease, ...], tuple[Lease, ...]]:
        """Return the leases that the claim's holder needs, and those that runs hold on the same volumes."""
        holder = _holder_of(claim)
        key = holder or claim.pool.cluster_id
        if key not in self._leased:
            wanted = leases.wanted([key]) if holder else {key: self._of(claim).leases}
            self._leased[key] = wanted.get(key, ()), leases.held(wanted)
        return self._leased[key]

    def _of(self, claim: Claim) -> Needs:
        return self._needs.get(claim.pool.cluster_id, Needs())

    def _see(self, pools: Iterable[Pool]) -> None:
        """Load the nodes of these pools, unless known."""
        unknown = {pool.id: pool for pool in pools if pool.id not in self._nodes}
        if unknown:
            self._nodes |= nodes_of(unknown.values())

    def _read(self, these: Iterable[Claim]) -> None:
        """Load the states of these pools, unless known: each with its queue, and one of the requests at the end."""
        unknown = {
            claim.pool: claim for claim in these if (claim.pool_id, claim.tenant_id) not in self._states
        }
        if not unknown:
            return
        self._see(unknown)
        waiting = Claim.objects.filter(pool__in=unknown, state=State.WAITING)
        rows = waiting.exclude(pk=self._without) if self._without else waiting
        by_pool: defaultdict[UUID, list[Any]] = defaultdict(list)
        for row in rows.values_list(*pool_state.WAITING, named=True):
            by_pool[row.pool_id].append(row)
        queues = {pool: [*by_pool[pool.id], claim] for pool, claim in unknown.items()}
        for pk, state in pool_state.read_all(queues, self._nodes).items():
            self._states[pk, state.waiting[-1].tenant] = state


def _holder_of(claim: Claim) -> UUID | None:
    """Return who made the request; None for one that is only estimated."""
    return claim.holder_id


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
        and may_launch(pool.cluster)
        and pool.has_gpus == bool(claim.need.units)
        and never(claim, state.tenants[claim.tenant], state.units_per_gpu) is None
        and could_hold((node.without_ours for node in state.nodes), claim.need, claim.members)
    )


def _borrows(state: PoolState, claim: Waiting) -> bool:
    quota = state.tenants[claim.tenant]
    nominal = quota.nominal_units
    return nominal is not None and bool(claim.units) and quota.used_units + claim.units > nominal


def after_pass(state: PoolState, decisions: Decisions) -> PoolState:
    """Return the state with the runs that the pass would preempt on their way out."""
    preempted = {reclaim.run for reclaim in decisions.reclaims}
    ends = state.now + state.grace

    def leaving(run: Run) -> Run:
        return replace(run, reclaim_at=run.reclaim_at or ends) if run.claim in preempted else run

    nodes = (replace(node, runs=tuple(map(leaving, node.runs))) for node in state.nodes)
    return replace(state, nodes=tuple(nodes)) if preempted else state

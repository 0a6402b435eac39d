"""Promises of the rules, for random nodes, quotas and queues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import strategies as st

from quotas.scheduling import (
    Decisions,
    Limits,
    NodeState,
    PoolState,
    Reason,
    Room,
    TenantQuota,
    Waiting,
    decide,
    never,
)
from quotas.scheduling.walk import Walk
from tests.quotas.scheduling.random_pools import of_any

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TENANTS = [UUID(int=n) for n in (1, 2, 3)]
KEPT = Reason("kept")


@st.composite
def nodes(draw: st.DrawFn) -> tuple[NodeState, ...]:
    made = []
    for number in range(draw(st.integers(0, 4))):
        whole = Room(draw(st.integers(0, 8)), draw(st.integers(0, 16)), draw(st.integers(0, 64)), 8)
        ours = Room(
            draw(st.integers(0, 9)),
            draw(st.integers(0, 17)),
            draw(st.integers(0, 65)),
            draw(st.integers(0, 9)),
        )
        made.append(NodeState(f"node-{number}", free=whole - ours, without_ours=whole))
    return tuple(made)


@st.composite
def claims(draw: st.DrawFn, place: int) -> Waiting:
    return Waiting(
        claim=UUID(int=1000 + place),
        tenant=draw(st.sampled_from(TENANTS)),
        need=Room(draw(st.integers(0, 9)), draw(st.integers(1, 17)), draw(st.integers(1, 65)), pods=1),
        priority=draw(st.integers(0, 1)),
        place=place,
        is_workspace=draw(st.booleans()),
        not_before=draw(st.sampled_from([None, None, None, NOW, NOW + timedelta(seconds=1)])),
        reason=KEPT,
    )


@st.composite
def quotas(draw: st.DrawFn) -> TenantQuota:
    limit = st.none() | st.integers(0, 40)
    return TenantQuota(
        used_units=draw(st.integers(0, 12)),
        limit_units=draw(st.none() | st.integers(0, 12)),
        used=Limits(draw(st.integers(0, 20)), draw(st.integers(0, 20)), draw(st.integers(0, 4))),
        limits=Limits(draw(limit), draw(limit), draw(st.none() | st.integers(0, 5))),
    )


@st.composite
def states(draw: st.DrawFn) -> PoolState:
    waiting = [draw(claims(place)) for place in range(draw(st.integers(0, 8)))]
    return PoolState(
        units_per_gpu=draw(st.integers(1, 7)),
        nodes=draw(nodes()),
        waiting=tuple(draw(st.permutations(waiting))),
        tenants={tenant: draw(quotas()) for tenant in TENANTS},
        now=NOW,
    )


def admitted_claims(state: PoolState, decisions: Decisions) -> dict[UUID, tuple[Waiting, str]]:
    node = {admitted.claim: admitted.node for admitted in decisions.admitted}
    return {claim.claim: (claim, node[claim.claim]) for claim in state.waiting if claim.claim in node}


def left_on(state: PoolState, decisions: Decisions) -> dict[str, Room]:
    left = {node.name: node.free for node in state.nodes}
    for claim, node in admitted_claims(state, decisions).values():
        left[node] -= claim.need
    return left


def free_quota(state: PoolState, decisions: Decisions, tenant: UUID) -> TenantQuota:
    mine = [claim for claim, _node in admitted_claims(state, decisions).values() if claim.tenant == tenant]
    quota = state.tenants[tenant]
    return TenantQuota(
        quota.used_units + sum(claim.need.units for claim in mine),
        quota.limit_units,
        Limits(
            (quota.used.cpu_millicores or 0) + sum(claim.need.cpu_millicores for claim in mine),
            (quota.used.memory_mib or 0) + sum(claim.need.memory_mib for claim in mine),
            (quota.used.workspaces or 0) + sum(claim.is_workspace for claim in mine),
        ),
        quota.limits,
    )


@of_any(states(), few=25)
def test_each_claim_is_decided_once_and_positions_count_up(state: PoolState) -> None:
    decisions = decide(state)
    decided = [a.claim for a in decisions.admitted] + [w.claim for w in decisions.waits]
    assert sorted(decided) == sorted(claim.claim for claim in state.waiting)
    assert [waits.position for waits in decisions.waits] == list(range(1, len(decisions.waits) + 1))
    order = [claim.claim for claim in Walk(state).order]
    assert [waits.claim for waits in decisions.waits] == [
        c for c in order if c in {w.claim for w in decisions.waits}
    ]


@of_any(states(), few=25)
def test_no_node_gives_more_than_it_has(state: PoolState) -> None:
    decisions = decide(state)
    used = {node for _claim, node in admitted_claims(state, decisions).values()}
    assert all(left_on(state, decisions)[name].holds(Room()) for name in used)


@of_any(states(), few=25)
def test_no_tenant_gets_more_than_its_quota_and_limits(state: PoolState) -> None:
    decisions = decide(state)
    for claim, _node in admitted_claims(state, decisions).values():
        after = free_quota(state, decisions, claim.tenant)
        assert not claim.need.units or after.limit_units is None or after.used_units <= after.limit_units
        for name in ("cpu_millicores", "memory_mib"):
            limit = getattr(after.limits, name)
            assert limit is None or getattr(after.used, name) <= limit


@of_any(states(), few=25)
def test_within_a_tenant_only_claims_that_cannot_start_are_overtaken(state: PoolState) -> None:
    decisions = decide(state)
    started = admitted_claims(state, decisions)
    for tenant in TENANTS:
        own = [claim for claim in Walk(state).order if claim.tenant == tenant]
        for earlier, later in ((own[i], own[j]) for i in range(len(own)) for j in range(i + 1, len(own))):
            if later.claim in started and earlier.claim not in started:
                backs_off = earlier.not_before is not None and earlier.not_before > NOW
                unfit = not any(node.without_ours.holds(earlier.need) for node in state.nodes)
                assert backs_off or unfit or never(earlier, state.tenants[tenant], 1)


@of_any(states(), few=25)
def test_a_claim_that_waits_behind_others_has_such_others(state: PoolState) -> None:
    decisions = decide(state)
    codes = {claim.claim: "" for claim in state.waiting} | {w.claim: w.reason.code for w in decisions.waits}
    order = Walk(state).order
    for place, claim in enumerate(order):
        before = order[:place]
        if codes[claim.claim] == "behind_others":
            assert any(codes[c.claim].startswith(("no_free_", "fragmented")) for c in before)
        if codes[claim.claim] == "behind_own_tenant":
            assert any(c.tenant == claim.tenant and codes[c.claim].endswith("_full") for c in before)

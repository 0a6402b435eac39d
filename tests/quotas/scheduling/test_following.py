"""Claims whose volumes are bound to nodes start there alone, and hold nothing elsewhere meanwhile."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import strategies as st

from quotas.scheduling import PoolState, decide
from tests.quotas.scheduling.random_pools import of_any, pools
from tests.quotas.scheduling.values import (
    DEMO,
    HOUR,
    SECOND,
    asks,
    codes,
    decided,
    node,
    pool,
    reasons,
    room,
    runs,
    started,
)


def test_a_claim_starts_where_its_disk_is_though_another_node_is_fuller() -> None:
    claim = asks(1, only={"b"})
    decisions = decided([node(runs(3), name="a"), node(name="b")], claim)
    assert [(one.claim, one.node) for one in decisions.admitted] == [(claim.claim, "b")]


def test_a_claim_whose_node_is_full_waits_for_it_and_another_gets_the_free_gpu() -> None:
    bound, other = asks(1, only={"a"}), asks(1, tenant=SECOND)
    decisions = decided([node(runs(4), name="a"), node(runs(3), name="b")], bound, other)
    assert started(decisions) == [other.claim]
    assert reasons(decisions)[0].data == {"on": ["a"], "gpus": 1, "free_gpus": 0}
    assert codes(decisions) == ["volume_node_full"]


def test_a_claim_whose_node_lacks_something_else_than_gpus_is_told_no_number_of_them() -> None:
    busy = node(replace(runs(0), takes=room(0, cpu=64_000)), name="a")
    decisions = decided([busy, node(name="b")], asks(0, only={"a"}))
    assert (codes(decisions), reasons(decisions)[0].data) == (["volume_node_busy"], {"on": ["a"]})


def test_a_claim_reserves_its_node_from_the_end_of_a_run_there() -> None:
    bound, later = asks(4, only={"a"}), asks(4, HOUR * 2, tenant=SECOND)
    decisions = decided([node(runs(4, HOUR), name="a"), node(runs(4), name="b")], bound, later)
    assert started(decisions) == []
    assert codes(decisions)[0] == "volume_node_full"


def test_why_it_never_starts_there() -> None:
    nodes = [node(name="a"), node(name="b")]
    assert codes(decided(nodes, asks(1, only={"z"}))) == ["volume_elsewhere"]
    assert codes(decided([node(name="a", of=2), nodes[1]], asks(3, only={"a"}))) == ["volume_node_small"]
    out = replace(pool([nodes[1]], asks(1, only={"a"})), resting=frozenset({"a"}))
    assert codes(decide(out)) == ["volume_node_out"]


@of_any(pools())
def test_no_claim_is_admitted_where_its_volumes_cannot_follow(state: PoolState) -> None:
    only = {claim.claim: claim.need.only for claim in state.waiting}
    for admitted in decide(state).admitted:
        assert only[admitted.claim] is None or admitted.node in (only[admitted.claim] or ())


@of_any(pools(bookings=0), st.integers(0, 5))
def test_a_claim_that_can_never_follow_delays_nobody(state: PoolState, at: int) -> None:
    """Every decision is as if the claim were not there."""
    stray = asks(1, tenant=DEMO, only={"node-9"}, place=-1)
    waiting = (*state.waiting[:at], stray, *state.waiting[at:])
    assert placed(replace(state, waiting=waiting)) == placed(state)


def placed(state: PoolState) -> dict[UUID, str]:
    return {admitted.claim: admitted.node for admitted in decide(state).admitted}

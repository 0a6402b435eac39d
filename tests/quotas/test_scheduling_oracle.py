"""Whatever the pool: every claim that could start has, and nothing that could not, judged by brute force."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from quotas.scheduling import PoolState, decide
from quotas.scheduling.order import in_order
from tests.quotas.oracle import could_have_started, starts
from tests.quotas.random_pools import pools

some = settings(max_examples=100, deadline=None)


@some
@given(pools())
def test_whoever_waits_could_not_have_started_without_delaying_somebody_before(state: PoolState) -> None:
    decisions = decide(state)
    assert could_have_started(state, decisions) == []


@some
@given(pools())
def test_nobody_who_started_delays_somebody_before(state: PoolState) -> None:
    decisions = decide(state)
    queue = [claim.claim for claim in in_order(state)]
    told = starts(state, decisions)
    for one in decisions.admitted:
        others = tuple(admitted for admitted in decisions.admitted if admitted is not one)
        without = starts(
            replace(state, waiting=tuple(claim for claim in state.waiting if claim.claim != one.claim)),
            replace(decisions, admitted=others),
        )
        before = queue[: queue.index(one.claim)]
        assert {claim: told.get(claim) for claim in before if claim in without} == {
            claim: start for claim, start in without.items() if claim in before
        }

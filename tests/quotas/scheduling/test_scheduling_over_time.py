"""The rules that look ahead: backfill, bookings, borrowing and preemption, cards; on plain values."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

from quotas.scheduling import (
    BOOKING_BEGINS,
    OWNER_WAITS,
    Booked,
    Card,
    Decisions,
    NodeState,
    PersonUse,
    Reason,
    Room,
    TenantQuota,
    Waiting,
    decide,
    may_last_until,
    plan,
)
from tests.quotas.scheduling.values import (
    DEMO,
    HOUR,
    MINUTE,
    NOW,
    OPEN,
    SECOND,
    THIRD,
    asks,
    codes,
    decided,
    node,
    numbers,
    pool,
    reasons,
    runs,
    started,
)


def books(gpus: int, starts: timedelta, *, places: int = 1, tenant: UUID = SECOND) -> Booked:
    return Booked(UUID(int=next(numbers)), tenant, NOW + starts, NOW + starts + 2 * HOUR, places, gpus)


def borrows(used: int, own: int) -> TenantQuota:
    return TenantQuota(used_units=used, limit_units=100, nominal_units=own)


# Backfill


def test_a_short_request_starts_beside_a_waiting_large_one_if_it_ends_in_time() -> None:
    large, short = asks(4), asks(1, HOUR)
    decisions = decided([node(runs(2, 2 * HOUR))], large, short)
    assert started(decisions) == [short.claim]
    assert decisions.admitted[0].must_end_at == NOW + 2 * HOUR


def test_a_request_that_would_delay_a_larger_one_waits() -> None:
    large, longer, unknown = asks(4), asks(1, 3 * HOUR), asks(1)
    decisions = decided([node(runs(2, 2 * HOUR))], large, longer, unknown)
    assert started(decisions) == []
    assert reasons(decisions)[1:] == [Reason("behind_larger", {"gpus": 4})] * 2


def test_a_request_that_fits_beside_a_reservation_starts_whatever_its_length() -> None:
    large, small = asks(3), asks(1)
    decisions = decided([node(runs(2, HOUR))], large, small)
    assert started(decisions) == [small.claim]
    assert decisions.admitted[0].must_end_at is None


def test_without_known_ends_the_node_that_lacks_least_is_reserved() -> None:
    large, small = asks(4), asks(1)
    nodes = [node(runs(3), name="a"), node(runs(1), name="b")]
    decisions = decided(nodes, large, small)
    assert [(admitted.claim, admitted.node) for admitted in decisions.admitted] == [(small.claim, "a")]


def test_a_run_that_is_past_its_end_is_not_counted_on_at_once() -> None:
    late = runs(4, -10 * MINUTE)
    large, short = asks(4), asks(4, 5 * MINUTE)
    starts = plan(pool([node(late)], large, short))
    assert starts[large.claim] == NOW + 10 * MINUTE


def test_the_plan_has_the_start_of_each_claim() -> None:
    first, second, third = asks(4, HOUR), asks(4, HOUR), asks(4)
    starts = plan(pool([node(runs(4, HOUR))], first, second, third))
    assert [starts[claim.claim] for claim in (first, second, third)] == [NOW + n * HOUR for n in (1, 2, 3)]


def test_the_plan_waits_for_the_tenants_own_runs_where_its_quota_is_full() -> None:
    quota = TenantQuota(used_units=2, limit_units=2, nominal_units=2)
    claim = asks(1)
    state = pool([node(runs(2, HOUR))], claim, demo=quota)
    assert plan(state)[claim.claim] == NOW + HOUR
    assert plan(state, ends_of=lambda run: None)[claim.claim] is None


def test_the_plan_leaves_out_a_node_that_is_too_small_after_it_changed() -> None:
    large, small, next_large = asks(4, HOUR), asks(1), asks(4, HOUR)
    starts = plan(pool([node(runs(4, HOUR)), node(name="b", of=1)], large, small, next_large))
    assert [starts[claim.claim] for claim in (large, small, next_large)] == [NOW + HOUR, NOW, NOW + 2 * HOUR]


def test_the_plan_finds_a_free_node_at_the_end_of_a_back_off() -> None:
    claim, end = asks(4, not_before=NOW + 5 * MINUTE), NOW + 5 * MINUTE
    nodes = [node(runs(4, HOUR)), node(runs(4, 2 * HOUR), name="b"), node(name="c")]
    assert plan(pool(nodes, claim)) == {claim.claim: end}


def test_a_run_may_be_extended_until_a_reservation_begins() -> None:
    run = runs(4, HOUR)
    assert may_last_until(pool([node(run)]), run.claim) is None
    assert may_last_until(pool([node(run)], bookings=(books(2, 3 * HOUR),)), run.claim) == NOW + 3 * HOUR
    assert may_last_until(pool([node(run)], asks(4)), run.claim) == NOW + HOUR


# Order of the queue


def test_the_tenant_that_had_less_for_its_weight_goes_first() -> None:
    much = replace(OPEN, past_use=10_000.0)
    mine, theirs = asks(4, HOUR), asks(4, HOUR, SECOND)
    assert started(decided([node()], mine, theirs, demo=much)) == [theirs.claim]
    heavy = replace(much, weight=20)
    lighter = replace(OPEN, past_use=1000.0)
    assert started(decided([node()], mine, theirs, demo=heavy, second=lighter)) == [mine.claim]


def test_tenants_take_turns() -> None:
    mine = [asks(1) for _ in range(4)]
    theirs = [asks(1, tenant=SECOND) for _ in range(2)]
    decisions = decided([node()], *mine, *theirs)
    assert set(started(decisions)) == {mine[0].claim, mine[1].claim, *(claim.claim for claim in theirs)}


def test_claims_within_their_own_share_go_before_borrowing_ones() -> None:
    borrower = asks(4, HOUR, returns_first=True)
    owner = asks(4, HOUR, SECOND)
    decisions = decided([node()], borrower, owner, demo=borrows(4, 4), second=borrows(0, 4))
    assert started(decisions) == [owner.claim]


def test_a_large_borrowing_claim_is_not_passed_by_later_small_ones_of_its_tenant() -> None:
    large, small = asks(4, HOUR), asks(1)
    decisions = decided([node(runs(2, HOUR))], large, small, demo=borrows(2, 5))
    assert [waits.claim for waits in decisions.waits] == [large.claim, small.claim]


def test_a_claim_at_a_personal_limit_takes_nothing_of_the_tenants_own_share() -> None:
    people = {7: PersonUse(Fraction(3), 1, most_gpus=3, most_workspaces=None)}
    stuck, behind, other = asks(3, user=7), asks(3, user=7), asks(2, HOUR, user=8)
    borrower = asks(2, HOUR, SECOND)
    demo = replace(borrows(3, 5), people=people)
    decisions = decided([node(runs(2))], stuck, behind, borrower, other, demo=demo, second=borrows(1, 0))
    assert started(decisions) == [other.claim]


def test_a_claim_that_gave_back_goes_before_others_that_borrow() -> None:
    early, gave_back = asks(4, HOUR, SECOND), asks(4, HOUR, returns_first=True)
    decisions = decided([node()], early, gave_back, demo=borrows(4, 4), second=borrows(4, 4))
    assert started(decisions) == [gave_back.claim]


# Limits


def test_a_limit_per_person_delays_only_that_person() -> None:
    people = {7: PersonUse(Fraction(2), 1, most_gpus=3, most_workspaces=None)}
    mine, small, other = asks(2, user=7), asks(1, user=7), asks(1, user=8)
    decisions = decided([node()], mine, small, other, demo=replace(OPEN, people=people))
    assert started(decisions) == [other.claim]
    full = Reason("person_gpus_full", {"gpus": 2, "used_gpus": 2, "limit_gpus": 3})
    assert reasons(decisions) == [full, Reason("behind_own_request")]
    people = {7: PersonUse(Fraction(0), 2, most_gpus=None, most_workspaces=2)}
    decisions = decided([node()], asks(1, user=7), demo=replace(OPEN, people=people))
    assert reasons(decisions) == [Reason("person_workspaces_full", {"limit": 2})]


def test_a_request_above_the_personal_limits_has_its_own_reasons() -> None:
    people = {7: PersonUse(Fraction(0), 0, most_gpus=1, most_workspaces=0)}
    demo = replace(OPEN, people=people)
    decisions = decided([node()], asks(2, user=7), asks(1, user=7), demo=demo)
    assert codes(decisions) == ["above_person_gpus", "above_person_workspaces"]


def test_the_borrowing_limit_is_shown_with_the_own_share() -> None:
    quota = TenantQuota(used_units=5, limit_units=6, nominal_units=4)
    told = {"gpus": 2, "used_gpus": 5, "limit_gpus": 6, "own_gpus": 4}
    assert reasons(decided([node()], asks(2), demo=quota)) == [Reason("borrow_limit", told)]


def test_a_spent_budget_stops_new_starts_and_delays_nobody_else() -> None:
    spent = Reason("budget_spent", {})
    mine, theirs = asks(4), asks(4, tenant=SECOND)
    decisions = decided([node()], mine, theirs, demo=replace(OPEN, blocked=spent))
    assert started(decisions) == [theirs.claim]
    assert reasons(decisions) == [spent]


# Bookings


def test_booked_gpus_are_used_before_by_runs_that_end_in_time() -> None:
    short, unknown = asks(2, HOUR), asks(2)
    booking = books(4, 2 * HOUR)
    decisions = decided([node()], unknown, short, bookings=(booking,))
    assert started(decisions) == [short.claim]
    assert decisions.admitted[0].must_end_at == booking.starts_at
    assert reasons(decisions) == [Reason("booked", {"from": booking.starts_at.isoformat()})]


def test_a_booking_that_has_begun_serves_its_tenant() -> None:
    booking = books(2, -HOUR, places=2)
    mine, theirs = asks(4), [asks(2, tenant=SECOND) for _ in range(3)]
    decisions = decided([node()], mine, *theirs, bookings=(booking,))
    assert started(decisions) == [theirs[0].claim, theirs[1].claim]
    assert [admitted.booking for admitted in decisions.admitted] == [booking.booking] * 2


def test_a_used_place_is_not_kept_free_beside_the_run_that_uses_it() -> None:
    booking = books(2, -HOUR)
    used = runs(2, 3 * HOUR, SECOND, booking=booking.booking)
    mine = asks(2)
    assert started(decided([node(used)], mine, bookings=(booking,))) == [mine.claim]


# Borrowing and preemption


def lent_pool(*nodes: NodeState, waiting: Waiting, lent: TenantQuota, **others: Any) -> Decisions:
    return decided([*nodes], waiting, demo=borrows(0, 4), second=lent, **others)


def test_the_youngest_borrowed_run_is_preempted() -> None:
    old, young = runs(2, None, SECOND, since=5 * HOUR), runs(2, None, SECOND)
    owner = asks(2)
    decisions = lent_pool(node(old, young), waiting=owner, lent=borrows(4, 2))
    assert [(one.run, one.beneficiary, one.code) for one in decisions.reclaims] == [
        (young.claim, owner.claim, OWNER_WAITS)
    ]
    at = (NOW + 10 * MINUTE).isoformat()
    assert reasons(decisions) == [Reason("waits_for_reclaim", {"gpus": 2, "at": at})]


def test_the_fewest_runs_are_preempted() -> None:
    ones = node(runs(2, None, SECOND), runs(2, None, SECOND), name="a")
    four = runs(4, None, SECOND, since=9 * HOUR)
    decisions = lent_pool(ones, node(four, name="b"), waiting=asks(4), lent=borrows(8, 0))
    assert [one.run for one in decisions.reclaims] == [four.claim]


def test_no_tenant_falls_below_its_own_share_if_another_run_would_do() -> None:
    partly, wholly = node(runs(3, None, SECOND, since=MINUTE)), node(runs(2, None, SECOND), name="b", of=2)
    asked = lent_pool(partly, wholly, waiting=asks(2), lent=borrows(5, 3)).reclaims
    assert [one.run for one in asked] == [wholly.runs[0].claim]


def test_a_partly_borrowed_run_is_preempted_if_no_other_would_do() -> None:
    three = runs(3, None, SECOND)
    assert [one.run for one in lent_pool(node(three), waiting=asks(2), lent=borrows(3, 1)).reclaims] == [
        three.claim
    ]
    assert not lent_pool(node(three), waiting=asks(2), lent=borrows(3, 3)).reclaims


def test_only_one_partly_borrowed_run_of_a_tenant_is_preempted() -> None:
    both = node(runs(2, None, SECOND), runs(2, None, SECOND))
    assert not lent_pool(both, waiting=asks(4), lent=borrows(4, 2)).reclaims
    assert len(lent_pool(both, waiting=asks(4), lent=borrows(4, 1)).reclaims) == 2


def test_a_borrowing_claim_preempts_nobody() -> None:
    state = pool([node(runs(4, None, SECOND))], asks(2), demo=borrows(4, 4), second=borrows(4, 0))
    assert not decide(state).reclaims


def test_a_run_of_higher_priority_and_one_that_ends_soon_anyway_are_left_alone() -> None:
    high = runs(4, None, SECOND, priority=1)
    assert not lent_pool(node(high), waiting=asks(2), lent=borrows(4, 0)).reclaims
    soon = runs(4, 9 * MINUTE, SECOND)
    assert not lent_pool(node(soon), waiting=asks(2), lent=borrows(4, 0)).reclaims


def test_a_preemption_is_kept_while_needed_and_cancelled_afterwards() -> None:
    owner = asks(2)
    asked = runs(2, None, SECOND, reclaim_at=NOW + 4 * MINUTE, reclaim_for=owner.claim)
    younger = runs(2, None, SECOND, since=MINUTE)
    decisions = lent_pool(node(asked, younger), waiting=owner, lent=borrows(4, 0))
    assert (decisions.reclaims, decisions.cancelled) == ((), ())
    assert reasons(decisions)[0].data["at"] == (NOW + 4 * MINUTE).isoformat()
    without = decided([node(asked, younger)], demo=borrows(0, 4), second=borrows(4, 0))
    assert (without.reclaims, without.cancelled) == ((), (asked.claim,))


def test_borrowed_runs_are_preempted_before_a_booking_begins() -> None:
    borrowed = runs(4, None, SECOND)
    booking = books(2, 8 * MINUTE, tenant=DEMO)
    state = pool([node(borrowed)], bookings=(booking,), demo=borrows(0, 4), second=borrows(4, 0))
    assert [(one.run, one.beneficiary, one.code) for one in decide(state).reclaims] == [
        (borrowed.claim, booking.booking, BOOKING_BEGINS)
    ]
    later = replace(state, bookings=(books(2, 3 * HOUR, tenant=DEMO),))
    assert not decide(later).reclaims


# Cards


def card_node(*cards: Card) -> NodeState:
    whole = Room(100 * len(cards), 64_000, 64_000, 100, tuple(Card(24_000, 100, 10) for _ in cards))
    return NodeState("a", replace(whole, cards=cards), whole)


def test_free_memory_of_several_cards_does_not_add_up() -> None:
    need = Room(50, 1000, 1000, 1, (Card(12_000, 50),))
    state = replace(pool([card_node(Card(8000, 50, 5), Card(8000, 80, 5))], asks(0)), units_per_gpu=100)
    told = decide(replace(state, waiting=(replace(state.waiting[0], need=need),))).waits[0].reason
    assert told.code == "no_free_cards"
    assert told.data["free_memory_mib"] == 16_000
    enough = card_node(Card(8000, 50, 5), Card(12_000, 50, 5))
    again = replace(state, nodes=(enough,), waiting=(replace(state.waiting[0], need=need),))
    assert started(decide(again)) == [state.waiting[0].claim]


def test_a_request_above_every_card_has_its_own_reason() -> None:
    need = Room(100, 1000, 1000, 1, (Card(48_000, 100),))
    state = replace(pool([card_node(Card(24_000, 100, 10))], asks(0)), units_per_gpu=100)
    told = decide(replace(state, waiting=(replace(state.waiting[0], need=need),))).waits[0].reason
    assert told.code == "no_node_has_cards"


def test_a_preemption_passes_to_the_next_claim_if_its_own_may_no_longer_start() -> None:
    """The preemption is not cancelled only to be made again by the next pass."""
    owner, above = asks(3), asks(4, tenant=THIRD)
    asked = runs(3, None, SECOND, reclaim_at=NOW + 4 * MINUTE, reclaim_for=above.claim)
    third = TenantQuota(0, 2, nominal_units=2)
    decisions = decide(
        pool([node(asked)], owner, above, demo=borrows(0, 4), second=borrows(3, 0), third=third)
    )
    assert [(one.run, one.beneficiary) for one in decisions.reclaims] == [(asked.claim, owner.claim)]
    assert not decisions.cancelled

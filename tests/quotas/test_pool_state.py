"""State of a pool as a pass reads it: runs, their ends, own and borrowed GPUs, past use, people, bookings."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from django.utils import timezone

from quotas import pool_state
from quotas.models import Booking, Claim, LedgerEntry, Quota, TenantLimit
from quotas.scheduling import PoolState, Run
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
DAY_OF_ONE_GPU = 24 * 3600


def read(stage: Stage) -> PoolState:
    return pool_state.read(stage.pool, Claim.objects.filter(state="waiting", pool=stage.pool))


def run_of(state: PoolState, claim: Claim) -> Run:
    [run] = [run for node in state.nodes for run in node.runs if run.claim == claim.pk]
    return run


def used(stage: Stage, claim: Claim, days_ago: int, units_per_gpu: int = 1) -> None:
    """Add one day of the claim's units to the ledger."""
    LedgerEntry.objects.create(
        claim=claim, pool=claim.pool, tenant=claim.tenant, user=claim.user, units=claim.units,
        units_per_gpu=units_per_gpu, microseconds=DAY_OF_ONE_GPU * 10**6,
        day=timezone.now().date() - timedelta(days=days_ago),
    )  # fmt: skip


def test_runs_are_on_their_nodes_with_their_latest_ends(stage: Stage) -> None:
    endless, hour = stage.running(1), stage.running(2, max_runtime_minutes=60, priority=1)
    state = read(stage)
    assert run_of(state, endless).ends_at is None
    run = run_of(state, hour)
    assert (run.takes.units, run.priority, run.in_pool) == (2, 1, True)
    assert hour.admitted_at and run.ends_at == hour.admitted_at + 75 * MINUTE  # includes time to start
    Claim.objects.filter(pk=hour.pk).update(end_unproven_since=timezone.now())
    assert run_of(read(stage), hour).ends_at is None  # unknown until an admin confirms it


def test_runs_of_another_pool_on_the_same_nodes_are_included(stage: Stage) -> None:
    other = stage.another_pool("shares-nodes")
    stage.quota(4, pool=other)
    claim = stage.running(1, pool=other)
    run = run_of(read(stage), claim)
    assert (run.in_pool, run.takes.units) == (False, 1)


def test_own_and_borrowed_units_are_separate(stage: Stage) -> None:
    Quota.objects.filter(tenant=stage.cast.demo).update(nominal_gpus=1, borrowing_limit_gpus=2, weight=3)
    stage.running(3)
    quota = read(stage).tenants[stage.cast.demo.pk]
    assert (quota.used_units, quota.nominal_units, quota.limit_units, quota.weight) == (3, 1, 3, 3)


def test_past_use_counts_half_after_seven_days(stage: Stage) -> None:
    claim, earlier, forgotten = stage.running(2), stage.running(1), stage.running(1)
    used(stage, claim, days_ago=0)
    used(stage, earlier, days_ago=7)
    used(stage, forgotten, days_ago=60)
    assert read(stage).tenants[stage.cast.demo.pk].past_use == pytest.approx(2.5 * DAY_OF_ONE_GPU)


def test_people_are_read_with_what_they_hold_over_all_pools(stage: Stage) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, person_gpus=2, person_workspaces=5)
    shared = stage.another_pool("shared", units_per_gpu=4)
    stage.quota(4, pool=shared)
    stage.running(1, pool=shared)
    stage.running(1)
    stage.request(1)
    use = read(stage).tenants[stage.cast.demo.pk].people[stage.cast.alice.user.pk]
    assert (use.gpus, use.workspaces, use.most_gpus, use.most_workspaces) == (Fraction(5, 4), 2, 2, 5)


def test_bookings_that_are_over_or_cancelled_are_not_read(stage: Stage) -> None:
    now = timezone.now()
    for begins, ends, cancelled in ((-2, -1, None), (1, 2, now), (-1, 1, None)):
        Booking.objects.create(
            pool=stage.pool, tenant=stage.cast.demo, created_by=stage.cast.alice.user, title="class",
            starts_at=now + begins * 60 * MINUTE, ends_at=now + ends * 60 * MINUTE, units_each=1,
            cancelled_at=cancelled,
        )  # fmt: skip
    [booked] = read(stage).bookings
    assert (booked.starts_at, booked.places) == (now - 60 * MINUTE, 1)


def test_as_many_queries_for_many_as_for_one(stage: Stage, django_assert_num_queries: Any) -> None:
    TenantLimit.objects.create(tenant=stage.cast.demo, person_gpus=8)
    stage.quota(8)
    stage.running(1)
    stage.request(1)
    with django_assert_num_queries(14) as few:
        read(stage)
    for _ in range(5):
        stage.request(1, by=stage.cast.carol)
    with django_assert_num_queries(len(few)):
        read(stage)

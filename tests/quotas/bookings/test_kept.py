"""Real passes keep booked GPUs free: no long run starts on them, a short run may, and the tenant gets them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from quotas import admission
from quotas.bookings import changes as bookings
from quotas.bookings.rules import Wish
from quotas.models import Booking, Claim, Quota
from quotas.templatetags.bookings import booked_now, booking_of
from tests.quotas.bookings.wishes import HOUR, wish
from tests.shared.stage import Stage, again

pytestmark = pytest.mark.django_db


@pytest.fixture
def booking(stage: Stage) -> Booking:
    """Four GPUs of gpu-1 for demo in twelve hours; gpu-2 is not ready."""
    stage.change_node("gpu-2", ready=False)
    return bookings.book(stage.cast.alice, stage.cast.demo, stage.pool, wish(12, places=2, gpus_each=2))


def begin(booking: Booking) -> None:
    Booking.objects.filter(pk=booking.pk).update(starts_at=timezone.now() - timedelta(minutes=1))


def carols(stage: Stage, gpus: int, *, minutes: int | None) -> Claim:
    claim = stage.request(gpus, by=stage.cast.carol, max_runtime_minutes=minutes)
    stage.admit()
    return again(claim)


def test_a_run_that_may_still_be_there_waits_because_of_the_booking(stage: Stage, booking: Booking) -> None:
    for minutes in (None, 24 * 60):
        claim = carols(stage, 2, minutes=minutes)
        assert (claim.state, claim.reason_code) == (Claim.State.WAITING, "booked")


def test_a_run_that_surely_ends_before_begins_and_is_held_to_that(stage: Stage, booking: Booking) -> None:
    claim = carols(stage, 4, minutes=60)
    assert claim.state == Claim.State.ADMITTED
    assert claim.ends_at is not None
    assert claim.ends_at <= booking.starts_at


def test_once_it_begins_its_tenants_runs_get_its_places_before_older_requests(
    stage: Stage, booking: Booking
) -> None:
    long = carols(stage, 2, minutes=None)
    begin(booking)
    assert booked_now(stage.cast.demo, "a100", 2) == booking
    class_runs = [stage.request(2) for _place in range(2)]
    stage.admit()
    assert {again(claim).booking_id for claim in class_runs} == {booking.pk}
    assert booked_now(stage.cast.demo, "a100", 2) is None
    assert {booking_of(claim.holder_id) for claim in class_runs} == {booking}
    assert booking_of(long.holder_id) is None
    assert again(long).state == Claim.State.WAITING


def test_after_it_is_cancelled_waiting_requests_start(stage: Stage, booking: Booking) -> None:
    claim = carols(stage, 2, minutes=None)
    bookings.cancel(stage.cast.alice, booking)
    stage.admit()
    assert again(claim).state == Claim.State.ADMITTED


def test_a_run_in_its_place_does_not_take_a_second_one(stage: Stage, booking: Booking) -> None:
    begin(booking)
    stage.running(2)
    inside = Claim.objects.get(booking=booking)
    assert inside.state == Claim.State.ADMITTED
    longer = Wish.of(Booking.objects.get())
    changed = bookings.change(stage.cast.alice, booking, replace(longer, ends_at=longer.ends_at + HOUR))
    assert changed.ends_at == booking.ends_at + HOUR


def test_a_borrowed_run_in_the_way_is_preempted_before_it_begins_though_nobody_waits(stage: Stage) -> None:
    stage.change_node("gpu-2", ready=False)
    Quota.objects.filter(tenant=stage.cast.second).update(nominal_gpus=1, borrowing_limit_gpus=3)
    own, borrowed = stage.running(1, by=stage.cast.carol), stage.running(3, by=stage.cast.carol)
    booking = bookings.book(stage.cast.alice, stage.cast.demo, stage.pool, wish(12, places=2))
    stage.admit()
    assert again(borrowed).reclaim_at is None  # too early
    Booking.objects.update(starts_at=timezone.now() + timedelta(minutes=8))
    stage.admit()
    asked = again(borrowed)
    assert (asked.reclaim_for, asked.reclaim_code) == (booking.pk, "booking_begins")
    assert asked.reclaim_at is not None
    assert again(own).reclaim_at is None


def test_nobody_is_preempted_for_a_place_that_its_tenant_has_no_quota_to_use(stage: Stage) -> None:
    mine = stage.running(4)
    Quota.objects.filter(tenant=stage.cast.second).update(nominal_gpus=1, borrowing_limit_gpus=3)
    stage.running(1, by=stage.cast.carol)
    borrowed = stage.running(3, by=stage.cast.carol)
    bookings.book(stage.cast.alice, stage.cast.demo, stage.pool, wish(12, places=2))
    Booking.objects.update(starts_at=timezone.now() + timedelta(minutes=8))
    stage.admit()
    assert again(borrowed).reclaim_at is None
    admission.release(mine.pk, "stopped")
    stage.change_node(mine.node, ready=False)
    stage.admit()
    assert again(borrowed).reclaim_at is not None

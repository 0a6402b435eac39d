"""Booking, changing and cancelling: permissions, refusals with alternatives, and notices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from accounts.access import Actor
from accounts.errors import NotAllowed, NotThere, Refusal
from accounts.models import AuditEntry, Membership
from accounts.notices import words
from accounts.notices.models import Notice
from quotas.bookings import changes as bookings
from quotas.bookings import rules as booking_rules
from quotas.bookings.free_slots import FreeSlots
from quotas.bookings.rules import NotFree, Wish
from quotas.models import Booking, Quota
from tests.quotas.bookings.wishes import HOUR, soon, wish
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db


def book(stage: Stage, asked: Wish | None = None, *, by: Actor | None = None) -> Booking:
    return bookings.book(by or stage.cast.alice, stage.cast.demo, stage.pool, asked or wish())


def refused(stage: Stage, asked: Wish, **values: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        book(stage, asked, **values)
    return caught.value


# --- Permissions


def test_an_owner_books_and_it_is_on_record(stage: Stage) -> None:
    booking = book(stage, wish(places=2, gpus_each=2))
    assert (booking.places, booking.units_each, booking.created_by) == (2, 2, stage.cast.alice.user)
    line = AuditEntry.objects.get(action="booking.create")
    assert (line.tenant, line.data["name"], line.data["pool"]) == (stage.cast.demo, "class", "a100")


def test_an_admin_books_for_a_tenant(stage: Stage) -> None:
    assert book(stage, by=stage.cast.admin).tenant == stage.cast.demo


def test_members_and_viewers_see_and_do_not_book(stage: Stage) -> None:
    booking = book(stage)
    for who in (stage.cast.bob, stage.cast.victor):
        assert bookings.get(who, booking.pk) == booking
        with pytest.raises(NotAllowed):
            book(stage, by=who)
        with pytest.raises(NotAllowed):
            bookings.cancel(who, booking)


def test_for_outsiders_there_is_nothing(stage: Stage) -> None:
    booking = book(stage)
    with pytest.raises(NotThere):
        bookings.get(stage.cast.carol, booking.pk)
    with pytest.raises(NotThere):
        book(stage, by=stage.cast.carol)


# --- Refusals


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        (wish(-1), "in_the_past", "from"),
        (wish(24 * 91), "too_far_ahead", "from"),
        (wish(lasts=0.2), "too_short", "to"),
        (wish(lasts=24 * 31), "too_long", "to"),
        (wish(title="  "), "invalid_title", "title"),
        (wish(title="x" * 121), "invalid_title", "title"),
        (wish(places=0), "invalid_places", "places"),
        (wish(gpus_each=0.5), "invalid_size", "gpus_each"),
        (wish(gpus_each=5), "no_node_has_gpus", "gpus_each"),
        (wish(places=5), "quota_exceeded", "places"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_booked_says_which_field_and_what_to_do(
    stage: Stage, asked: Wish, code: str, field: str
) -> None:
    refusal = refused(stage, asked)
    assert (refusal.code, list(refusal.fields)) == (code, [field])
    assert refusal.hint
    assert not Booking.objects.exists()


def test_more_than_the_tenants_own_says_how_much_that_is(stage: Stage) -> None:
    """Borrowed GPUs cannot be booked: others may need them back, and booked GPUs are never preempted."""
    Quota.objects.filter(tenant=stage.cast.demo).update(borrowing_limit_gpus=2)
    assert "5 GPUs" in (refusal := refused(stage, wish(places=5))).message
    assert "4 of its own" in refusal.message
    assert book(stage, wish(places=4)).places == 4
    assert isinstance(refused(stage, wish(25)), NotFree)


def test_nobody_books_so_often_that_every_pass_takes_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking_rules, "MOST_BOOKINGS", 2)
    first, _second = book(stage, wish(24)), book(stage, wish(30))
    assert refused(stage, wish(36)).code == "too_many_bookings"
    bookings.change(stage.cast.alice, first, wish(26))
    bookings.cancel(stage.cast.alice, first)
    assert book(stage, wish(36)).places == 1


def test_while_the_next_free_slot_is_looked_for_nobody_waits_for_the_lock(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    def look(_self: FreeSlots, *_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            held.append(cursor.fetchone()[0] > 0)

    whole = {"starts_at": soon(24), "ends_at": soon(26), "places": 4, "units_each": 1, "title": "class"}
    Booking.objects.create(pool=stage.pool, tenant=stage.cast.demo, created_by=stage.cast.alice.user, **whole)
    monkeypatch.setattr(FreeSlots, "next_free", look)
    assert isinstance(refused(stage, wish()), NotFree)
    assert held == [False]


def test_nothing_is_booked_in_a_pool_that_is_out_of_use_or_has_no_gpus(stage: Stage) -> None:
    stage.pool.is_open = False
    stage.pool.save()
    assert refused(stage, wish()).code == "pool_closed"
    with pytest.raises(Refusal) as caught:
        bookings.book(stage.cast.alice, stage.cast.demo, stage.cpu_pool(), wish())
    assert list(caught.value.fields) == ["pool"]


def test_a_conflict_says_when_as_much_is_free_and_how_many_places_are_free_then(stage: Stage) -> None:
    first = book(stage, wish(24, lasts=4, places=3))
    refusal = refused(stage, wish(25, places=2))
    assert isinstance(refusal, NotFree)
    assert (refusal.code, refusal.next_free_at, refusal.places_free) == ("not_free", first.ends_at, 1)
    assert refusal.fields["next_free_at"] == [first.ends_at.isoformat()]
    assert "1 place is free" in refusal.hint
    assert refusal.next_free_at
    moved = replace(wish(places=2), starts_at=refusal.next_free_at, ends_at=refusal.next_free_at + 2 * HOUR)
    assert book(stage, moved).places == 2


def test_a_run_without_an_end_is_in_the_way_for_ever_and_one_with_an_end_until_then(stage: Stage) -> None:
    endless = [stage.running(4), stage.running(4, by=stage.cast.carol)]
    refusal = refused(stage, wish(gpus_each=4))
    assert isinstance(refusal, NotFree)
    assert refusal.next_free_at is None
    assert "90 days" in refusal.hint
    ends_at = soon(30)
    type(endless[1]).objects.filter(pk=endless[1].pk).update(ends_at=ends_at)
    refusal = refused(stage, wish(gpus_each=4))
    assert isinstance(refusal, NotFree)
    assert refusal.next_free_at == ends_at


# --- Changing and cancelling


def test_a_booking_is_moved_and_shrunk_by_the_same_rules(stage: Stage) -> None:
    booking = book(stage, wish(24, places=4))
    blocker = bookings.book(stage.cast.admin, stage.cast.second, stage.pool, wish(48, places=4, gpus_each=1))
    bookings.book(stage.cast.admin, stage.cast.second, stage.pool, wish(72, lasts=1))
    moved = replace(Wish.of(booking), starts_at=soon(50), ends_at=soon(52), title="exam")
    assert bookings.change(stage.cast.alice, booking, moved).title == "exam"
    assert (row(booking).starts_at, row(booking).places) == (soon(50), 4)
    stage.change_node("gpu-2", ready=False)
    with pytest.raises(NotFree):
        bookings.change(stage.cast.alice, booking, replace(moved, starts_at=soon(49), ends_at=soon(51)))
    fewer = replace(moved, places=1)  # less is always possible
    assert bookings.change(stage.cast.alice, booking, fewer).places == 1
    assert blocker.places == 4
    before = AuditEntry.objects.filter(action="booking.change").latest("at").data["before"]
    assert before == {"places": "4"}


def test_changing_nothing_is_not_on_record(stage: Stage) -> None:
    booking = book(stage)
    bookings.change(stage.cast.alice, booking, Wish.of(booking))
    assert not AuditEntry.objects.filter(action="booking.change").exists()


def test_what_began_keeps_its_beginning_and_what_is_over_stays(stage: Stage) -> None:
    booking = book(stage, wish(12, lasts=1))
    Booking.objects.update(starts_at=soon(-1))
    booking = row(booking)
    longer = replace(Wish.of(booking), ends_at=soon(14))
    assert bookings.change(stage.cast.alice, booking, longer).ends_at == soon(14)
    with pytest.raises(Refusal) as caught:
        bookings.change(stage.cast.alice, booking, replace(longer, starts_at=soon(12)))
    assert caught.value.code == "began_already"
    Booking.objects.update(starts_at=soon(-5), ends_at=soon(-1))
    with pytest.raises(Refusal) as caught:
        bookings.change(stage.cast.alice, booking, replace(longer, title="late"))
    assert caught.value.code == "booking_over"


def test_what_is_cancelled_is_free_again_and_cancelling_twice_changes_nothing(stage: Stage) -> None:
    booking = book(stage, wish(places=4))
    refused(stage, wish(places=4))
    assert bookings.cancel(stage.cast.alice, booking) is True
    assert bookings.cancel(stage.cast.alice, booking) is False
    assert AuditEntry.objects.filter(action="booking.cancel").count() == 1
    assert book(stage, wish(places=4)).places == 4


def test_whoever_waits_is_looked_at_again_once_a_booking_is_cancelled(
    stage: Stage, django_capture_on_commit_callbacks: Any
) -> None:
    booking = book(stage)
    with django_capture_on_commit_callbacks(execute=True):
        bookings.cancel(stage.cast.alice, booking)
    stage.pool.refresh_from_db()
    assert stage.pool.pass_queued_at is not None


def row(booking: Booking) -> Booking:
    return Booking.objects.get(pk=booking.pk)


# --- Two at once


@pytest.mark.django_db(transaction=True)
def test_of_two_who_book_the_same_at_once_one_gets_it_and_the_other_hears_when(stage: Stage) -> None:
    asked, begin = wish(places=4), threading.Barrier(2)
    outcomes: list[Any] = []

    def try_it() -> None:
        try:
            begin.wait(20)
            outcomes.append(book(stage, asked))
        except NotFree as refusal:
            outcomes.append(refusal.next_free_at)
        finally:
            connection.close()

    threads = [threading.Thread(target=try_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    [booking] = Booking.objects.all()
    assert booking in outcomes
    assert asked.ends_at in outcomes


# --- Notices


@pytest.fixture
def told(stage: Stage) -> Iterator[Any]:
    yield lambda who: [
        words.of(who.user, [notice])[notice.pk].title
        for notice in Notice.objects.filter(user=who.user).order_by("at")
    ]


def test_the_people_of_the_tenant_hear_of_it_but_not_whoever_did_it(stage: Stage, told: Any) -> None:
    booking = book(stage)
    bookings.change(stage.cast.alice, booking, replace(Wish.of(booking), title="exam"))  # notifies nobody
    bookings.change(stage.cast.alice, booking, replace(Wish.of(booking), title="exam", ends_at=soon(27)))
    bookings.cancel(stage.cast.admin, booking)
    assert [title.split()[:2] for title in told(stage.cast.bob)] == [
        ["alice", "booked"],
        ["alice", "changed"],
        ["admin", "cancelled"],
    ]
    assert [title.split()[:2] for title in told(stage.cast.alice)] == [["admin", "cancelled"]]
    assert told(stage.cast.victor) == told(stage.cast.carol) == []


def test_who_runs_on_borrowed_gpus_hears_that_they_are_booked_and_not_by_whom(
    stage: Stage, told: Any
) -> None:
    Quota.objects.filter(tenant=stage.cast.second).update(nominal_gpus=2, borrowing_limit_gpus=6)
    for _run in range(4):
        stage.running(2, by=stage.cast.carol)
    book(stage, wish(places=2, gpus_each=2))
    [title] = told(stage.cast.carol)
    assert title.startswith("GPUs of A100 are booked from")
    assert "Demo" not in title


def test_a_notice_of_a_tenant_that_somebody_left_says_nothing(stage: Stage, told: Any) -> None:
    book(stage)
    Membership.objects.filter(user=stage.cast.bob.user).delete()
    notices = list(Notice.objects.filter(user=stage.cast.bob.user))
    assert notices
    assert words.of(stage.cast.bob.user, notices) == {}

"""Booking, changing and cancelling: permissions, refusals with alternatives, and notices."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
from quotas.models import Booking, Claim, Quota
from tests.quotas.bookings.wishes import HOUR, soon, wish
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db


def book(stage: Stage, asked: Wish | None = None, *, by: Actor | None = None) -> Booking:
    return bookings.book(by or stage.cast.alice, stage.cast.demo, stage.pool, asked or wish())


def change(stage: Stage, booking: Booking, **values: Any) -> Booking:
    return bookings.change(stage.cast.alice, booking, replace(Wish.of(booking), **values))


def refused(act: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        act()
    return caught.value


def not_free(stage: Stage, asked: Wish) -> NotFree:
    refusal = refused(lambda: book(stage, asked))
    assert isinstance(refusal, NotFree)
    return refusal


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


def test_for_strangers_there_is_nothing(stage: Stage) -> None:
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
    refusal = refused(lambda: book(stage, asked))
    assert (refusal.code, list(refusal.fields)) == (code, [field])
    assert refusal.hint
    assert not Booking.objects.exists()


def test_more_than_the_tenants_own_says_how_much_that_is(stage: Stage) -> None:
    """Borrowed GPUs cannot be booked: others may need them back, and booked GPUs are never preempted."""
    Quota.objects.filter(tenant=stage.cast.demo).update(borrowing_limit_gpus=2)
    message = refused(lambda: book(stage, wish(places=5))).message
    assert "5 GPUs" in message and "4 of its own" in message
    assert book(stage, wish(places=4)).places == 4
    not_free(stage, wish(25))


def test_nobody_books_so_often_that_every_pass_takes_long(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking_rules, "MOST_BOOKINGS", 2)
    first, _second = book(stage, wish(24)), book(stage, wish(30))
    assert refused(lambda: book(stage, wish(36))).code == "too_many_bookings"
    bookings.change(stage.cast.alice, first, wish(26))
    bookings.cancel(stage.cast.alice, first)
    assert book(stage, wish(36)).places == 1


def test_the_lock_is_released_while_the_next_free_slot_is_searched(
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
    not_free(stage, wish())
    assert held == [False]


def test_nothing_is_booked_in_a_pool_that_is_out_of_use_or_has_no_gpus(stage: Stage) -> None:
    stage.pool.is_open = False
    stage.pool.save()
    assert refused(lambda: book(stage)).code == "pool_closed"
    cpu = stage.cpu_pool()
    refusal = refused(lambda: bookings.book(stage.cast.alice, stage.cast.demo, cpu, wish()))
    assert list(refusal.fields) == ["pool"]


def test_a_conflict_says_when_as_much_is_free_and_how_many_places_are_free_then(stage: Stage) -> None:
    first = book(stage, wish(24, lasts=4, places=3))
    refusal = not_free(stage, wish(25, places=2))
    assert (refusal.code, refusal.next_free_at, refusal.places_free) == ("not_free", first.ends_at, 1)
    assert refusal.fields["next_free_at"] == [first.ends_at.isoformat()]
    assert "1 place is free" in refusal.hint
    assert refusal.next_free_at
    moved = replace(wish(places=2), starts_at=refusal.next_free_at, ends_at=refusal.next_free_at + 2 * HOUR)
    assert book(stage, moved).places == 2


def test_a_run_without_an_end_is_in_the_way_for_ever_and_one_with_an_end_until_then(stage: Stage) -> None:
    _endless, another = stage.running(4), stage.running(4, by=stage.cast.carol)
    refusal = not_free(stage, wish(gpus_each=4))
    assert refusal.next_free_at is None
    assert "90 days" in refusal.hint
    Claim.objects.filter(pk=another.pk).update(ends_at=soon(30))
    assert not_free(stage, wish(gpus_each=4)).next_free_at == soon(30)


# --- Changing and cancelling


def test_a_booking_is_moved_and_shrunk_by_the_same_rules(stage: Stage) -> None:
    booking = book(stage, wish(24, places=4))
    bookings.book(stage.cast.admin, stage.cast.second, stage.pool, wish(48, places=4))
    moved = change(stage, booking, starts_at=soon(50), ends_at=soon(52), title="exam")
    assert (moved.title, row(booking).starts_at, row(booking).places) == ("exam", soon(50), 4)
    stage.change_node("gpu-2", ready=False)
    with pytest.raises(NotFree):
        change(stage, moved, starts_at=soon(49), ends_at=soon(51))
    assert change(stage, moved, places=1).places == 1  # less is always possible
    before = AuditEntry.objects.filter(action="booking.change").latest("at").data["before"]
    assert before == {"places": "4"}


def test_changing_nothing_is_not_on_record(stage: Stage) -> None:
    booking = book(stage)
    change(stage, booking)
    assert not AuditEntry.objects.filter(action="booking.change").exists()


def test_what_began_keeps_its_beginning_and_what_is_over_stays(stage: Stage) -> None:
    booking = book(stage, wish(12, lasts=1))
    Booking.objects.update(starts_at=soon(-1))
    longer = change(stage, row(booking), ends_at=soon(14))
    assert longer.ends_at == soon(14)
    assert refused(lambda: change(stage, longer, starts_at=soon(12))).code == "began_already"
    Booking.objects.update(starts_at=soon(-5), ends_at=soon(-1))
    assert refused(lambda: change(stage, longer, title="late")).code == "booking_over"


def test_what_is_cancelled_is_free_again_and_cancelling_twice_changes_nothing(stage: Stage) -> None:
    booking = book(stage, wish(places=4))
    not_free(stage, wish(places=4))
    assert bookings.cancel(stage.cast.alice, booking) is True
    assert bookings.cancel(stage.cast.alice, booking) is False
    assert AuditEntry.objects.filter(action="booking.cancel").count() == 1
    assert book(stage, wish(places=4)).places == 4


def test_cancelling_requests_a_pass_for_the_queue(
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
def test_of_two_people_who_book_the_same_at_once_one_gets_it(stage: Stage) -> None:
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


def notified(who: Actor) -> list[str]:
    """Return the titles of the person's notices."""
    notices = Notice.objects.filter(user=who.user).order_by("at")
    return [words.of(who.user, [notice])[notice.pk].title for notice in notices]


def test_the_people_of_the_tenant_are_notified_but_not_the_one_who_acted(stage: Stage) -> None:
    booking = book(stage)
    change(stage, booking, title="exam")  # notifies nobody
    change(stage, booking, title="exam", ends_at=soon(27))
    bookings.cancel(stage.cast.admin, booking)
    said = [title.split()[:2] for title in notified(stage.cast.bob)]
    assert said == [["alice", "booked"], ["alice", "changed"], ["admin", "cancelled"]]
    assert [title.split()[:2] for title in notified(stage.cast.alice)] == [["admin", "cancelled"]]
    assert notified(stage.cast.victor) == notified(stage.cast.carol) == []


def test_people_on_borrowed_gpus_are_notified_and_not_by_whom_they_are_booked(stage: Stage) -> None:
    Quota.objects.filter(tenant=stage.cast.second).update(nominal_gpus=2, borrowing_limit_gpus=6)
    for _run in range(4):
        stage.running(2, by=stage.cast.carol)
    book(stage, wish(places=2, gpus_each=2))
    [title] = notified(stage.cast.carol)
    assert title.startswith("GPUs of A100 are booked from")
    assert "Demo" not in title


def test_a_notice_of_a_tenant_that_somebody_left_says_nothing(stage: Stage) -> None:
    book(stage)
    Membership.objects.filter(user=stage.cast.bob.user).delete()
    notices = list(Notice.objects.filter(user=stage.cast.bob.user))
    assert notices
    assert words.of(stage.cast.bob.user, notices) == {}

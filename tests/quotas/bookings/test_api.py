"""`bookings/` as a program sees it, and the pages around the calendar."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from accounts.models import Scope, User
from quotas.bookings import changes as bookings
from quotas.bookings.calendar import Week
from quotas.models import Booking
from tests.admin_forms import confirm, preview, text_of
from tests.quotas.bookings.wishes import HOUR, soon, wish
from tests.shared.clients import ask, browser, script
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db

URL, BOOKINGS = "/api/v1/bookings/", "/admin/quotas/booking/"


def body(**values: Any) -> dict[str, Any]:
    times = {"from": soon(24).isoformat(), "to": soon(26).isoformat()}
    return {"tenant": "demo", "pool": "a100", "title": "class", "places": 2, **times, **values}


def post(stage: Stage, **values: Any) -> Any:
    return ask(script(stage.cast.alice), "POST", "bookings/", body(**values))


def book(stage: Stage, hours: float = 24, **values: Any) -> Booking:
    return bookings.book(stage.cast.alice, stage.cast.demo, stage.pool, wish(hours, **values))


def of_second(stage: Stage) -> Booking:
    return bookings.book(stage.cast.admin, stage.cast.second, stage.pool, wish(24, places=4, title="secret"))


# --- The API


def test_a_booking_has_the_shape_of_the_contract(stage: Stage) -> None:
    answer = post(stage)
    assert answer.status_code == 201, answer.content
    shape = answer.json()
    times = {"from": f"{soon(24):%Y-%m-%dT%H:%M:%SZ}", "to": f"{soon(26):%Y-%m-%dT%H:%M:%SZ}"}
    state = {"gpus_each": 1, "created_by": "alice", "state": "upcoming", "images_warm": []}
    assert shape == {"id": str(Booking.objects.get().pk), **body(), **times, **state}
    assert script(stage.cast.victor, Scope.READ).get(f"{URL}{shape['id']}/").json() == shape


def test_other_tenants_see_only_that_gpus_are_booked(stage: Stage) -> None:
    booking = of_second(stage)
    alice = script(stage.cast.alice)
    [told] = alice.get(URL).json()["results"]
    assert told["places"] == 4
    assert {told[name] for name in ("id", "tenant", "title", "created_by")} == {None}
    assert alice.get(f"{URL}?tenant=second").json()["results"] == []
    for method in (alice.get, alice.delete):
        assert method(f"{URL}{booking.pk}/").status_code == 404
    bookings.cancel(stage.cast.admin, booking)
    assert alice.get(URL).json()["results"] == []


def test_a_conflict_names_the_next_free_slot(stage: Stage) -> None:
    post(stage, places=4)
    answer = post(stage, places=1)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, "not_free")
    assert datetime.fromisoformat(error["fields"]["next_free_at"][0]) == soon(26)
    assert error["hint"]


@pytest.mark.parametrize(
    ("values", "status", "field"),
    [
        ({"from": "2026-03-02T09:00:00"}, 400, "from"),
        ({"from": "0001-01-01T00:00:00+14:00"}, 400, "from"),
        ({"to": None}, 400, "to"),
        ({"gpus_each": "nan"}, 400, "gpus_each"),
        ({"places": 0}, 400, "places"),
        ({"colour": "red"}, 400, "colour"),
        ({"pool": "none"}, 422, "pool"),
        ({"places": 9}, 422, "places"),
        ({"gpus_each": 0}, 422, "gpus_each"),
    ],
    ids=str,
)
def test_a_refusal_names_the_field(stage: Stage, values: dict[str, Any], status: int, field: str) -> None:
    answer = post(stage, **values)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (status, [field])


def test_the_same_key_books_once(stage: Stage) -> None:
    client = script(stage.cast.alice)
    for _again in range(2):
        answer = ask(client, "POST", "bookings/", body(), **{"Idempotency-Key": "class-1"})
        assert answer.status_code == 201
    assert Booking.objects.count() == 1


def test_a_booking_is_changed_and_cancelled_twice(stage: Stage) -> None:
    path = f"bookings/{post(stage).json()['id']}/"
    client = script(stage.cast.alice)
    changed = ask(client, "PATCH", path, {"title": "exam", "to": soon(27).isoformat(), "places": 1})
    assert changed.status_code == 200, changed.content
    assert (changed.json()["title"], changed.json()["places"]) == ("exam", 1)
    for _again in range(2):
        assert ask(client, "DELETE", path).json()["state"] == "cancelled"
    assert ask(client, "PATCH", path, {"title": "x"}).status_code == 409


def test_the_list_has_filters_and_pages(stage: Stage) -> None:
    for hours in (24, 48, 72):
        book(stage, hours, title=str(hours))
    client = script(stage.cast.alice)

    def titles(**query: str) -> list[str]:
        return [one["title"] for one in client.get(URL, query).json()["results"]]

    assert titles(pool="a100", tenant="demo", state="upcoming") == ["24", "48", "72"]
    assert titles(**{"from": soon(26).isoformat(), "to": soon(49).isoformat()}) == ["48"]
    assert titles(**{"from": "8257-12-13T11:27:39-22:07"}) == []
    assert titles(to=f"{soon(24):%Y-%m-%d}") == ["24"]
    assert titles(pool="none") == titles(state="over") == []
    first = client.get(URL, {"limit": "2"}).json()
    assert [one["title"] for one in client.get(first["next"]).json()["results"]] == ["72"]


def test_a_token_of_another_tenant_sees_what_strangers_see(stage: Stage) -> None:
    booking = book(stage)
    elsewhere = script(stage.cast.admin, tenant=stage.cast.second)
    assert elsewhere.get(f"{URL}{booking.pk}/").status_code == 404
    assert elsewhere.get(URL).json()["results"][0]["title"] is None


# --- The pages


def times(starts_at: datetime, ends_at: datetime) -> dict[str, str]:
    """Return times as a browser posts them."""
    return {"starts_at": f"{starts_at:%Y-%m-%dT%H:%M}", "ends_at": f"{ends_at:%Y-%m-%dT%H:%M}"}


def typed(**values: Any) -> dict[str, Any]:
    asked = {"tenant": "demo", "pool": "a100", "title": "class", "places": 2, "gpus_each": 1}
    return asked | times(soon(24), soon(26)) | values


def test_an_owner_books_on_the_calendar_and_finds_it_there(stage: Stage) -> None:
    page = text_of(browser(stage.cast.alice).post("/bookings/", typed(), follow=True))
    assert "at most 2 of 8 GPUs booked at once" in page
    assert "class" in page
    assert browser(stage.cast.bob).get("/bookings/").context["coming"] == Booking.objects.get()


def test_other_tenants_see_booked_on_the_calendar(stage: Stage) -> None:
    of_second(stage)
    page = browser(stage.cast.bob).get(f"/bookings/?week={soon(24):%Y-%m-%d}").content.decode()
    assert "booked" in page
    assert "secret" not in page
    assert "Second" not in page


def test_a_conflict_on_the_page_offers_the_next_slot_with_one_click(stage: Stage) -> None:
    book(stage, places=4)
    alice = browser(stage.cast.alice)
    for address, status in (("/bookings/", 409), ("/bookings/answer/", 200)):
        answer = alice.post(address, typed())
        assert answer.status_code == status
        assert f"starts_at={soon(26):%Y-%m-%dT%H}%3A{soon(26):%M}" in answer.content.decode()
    assert "This is free" in text_of(alice.post("/bookings/answer/", typed(**times(soon(26), soon(27)))))
    assert Booking.objects.count() == 1


def test_runs_without_an_end_count_too_and_the_answer_says_so(stage: Stage) -> None:
    stage.running(3)
    answer = text_of(browser(stage.cast.alice).post("/bookings/answer/", typed()))
    assert "This is free" in answer
    assert "use 3 of its 4 GPUs" in answer


def test_times_are_typed_in_the_persons_time_zone_and_a_skipped_hour_is_refused(stage: Stage) -> None:
    stage.cast.alice.user.time_zone = "Asia/Seoul"  # has no daylight saving time
    stage.cast.alice.user.save()
    alice = browser(stage.cast.alice)
    begins = soon(24).astimezone(ZoneInfo("Asia/Seoul"))
    page = text_of(alice.post("/bookings/", typed(**times(begins, begins + 2 * HOUR)), follow=True))
    assert Booking.objects.get().starts_at == soon(24)
    assert "Asia/Seoul" in page
    assert alice.post("/bookings/", typed(starts_at="0001-01-01T00:00")).status_code == 422
    User.objects.filter(pk=stage.cast.alice.user.pk).update(time_zone="Europe/Berlin")
    skipped = alice.post("/bookings/", typed(starts_at="2027-03-28T02:30", ends_at="2027-03-28T05:00"))
    assert skipped.status_code == 422
    assert "Europe/Berlin" in skipped.content.decode()


def test_a_booking_is_changed_and_cancelled_on_its_page(stage: Stage) -> None:
    booking = book(stage)
    alice = browser(stage.cast.alice)
    address = f"/bookings/{booking.pk}/"
    assert alice.get(address).status_code == 200
    assert alice.post(address, typed(title="exam")).status_code == 302
    assert Booking.objects.get().title == "exam"
    assert "exam" in alice.get(f"{address}cancel/").content.decode()
    assert alice.post(f"{address}cancel/").status_code == 302
    assert Booking.objects.get().state == Booking.State.CANCELLED
    assert "Edit booking" not in alice.get(address).content.decode()


def test_a_change_of_the_title_alone_leaves_the_seconds_of_its_times(stage: Stage) -> None:
    booking = book(stage)
    Booking.objects.update(starts_at=timezone.now() - timedelta(seconds=90))
    was = Booking.objects.get()
    changed = typed(title="exam", places=1, **times(was.starts_at, was.ends_at))
    answer = browser(stage.cast.alice).post(f"/bookings/{booking.pk}/", changed)
    assert answer.status_code == 302
    assert (Booking.objects.get().title, Booking.objects.get().starts_at) == ("exam", was.starts_at)


@pytest.mark.parametrize("row", ["pool", "demo", "alice"])
def test_what_has_bookings_is_kept_and_says_why(stage: Stage, row: str) -> None:
    book(stage)
    found = {"pool": stage.pool, "demo": stage.cast.demo, "alice": stage.cast.alice.user}[row]
    address = f"/admin/{found._meta.app_label}/{found._meta.model_name}/{found.pk}/delete/"
    assert "on record" in text_of(browser(stage.cast.admin).get(address))


def test_a_week_with_a_change_of_the_clock_has_seven_days() -> None:
    with timezone.override(ZoneInfo("Europe/Berlin")):
        week = Week(date(2026, 3, 23))
        assert len(week.midnights) == 8
        sunday_noon = datetime(2026, 3, 29, 12, tzinfo=ZoneInfo("Europe/Berlin"))
        assert week.part(sunday_noon) == pytest.approx((6 + 11 / 23) / 7)
        assert week.part(week.midnights[-1]) == 1


@pytest.mark.parametrize("text", ["", "nonsense", "0001-01-01", "9999-12-31", "\0"])
def test_an_address_that_names_no_week_shows_this_one(text: str) -> None:
    assert Week.of(text).monday <= timezone.localdate() <= Week.of(text).sunday


# --- The admin


def test_an_admin_looks_at_bookings_and_cancels_them_after_seeing_what_that_means(stage: Stage) -> None:
    booking = book(stage, places=2)
    admin = browser(stage.cast.admin)
    assert "2 × 1 GPU" in text_of(admin.get(BOOKINGS, {"state": "upcoming", "q": "class"}))
    assert "2 × 1 GPU" not in text_of(admin.get(BOOKINGS, {"state": "over"}))
    assert admin.get(f"{BOOKINGS}{booking.pk}/change/").status_code == 200
    page = preview(admin, BOOKINGS, "cancel", booking)
    assert "Running workspaces are not affected." in text_of(page)
    confirm(admin, BOOKINGS, page)
    assert Booking.objects.get().state == Booking.State.CANCELLED

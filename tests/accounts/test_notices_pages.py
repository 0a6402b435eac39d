"""The pages of notices: the list, the settings, and the link that ends mails without a sign-in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from accounts.access import Actor
from accounts.models import AuditEntry, User
from accounts.notices import inbox, notifying, preferences, words
from accounts.notices.checks import mail_is_set_up
from accounts.notices.kinds import DEFAULTS, Kind
from accounts.notices.models import Notice
from accounts.notices.words import Words
from tests.accounts.people import People
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    return {
        notice.pk: Words(title=notice.data["title"], text="It is so.", path="/there/", action="Go there")
        for notice in notices
    }


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_rooms", {"thing": describe})


def tell(actor: Actor, title: str) -> Notice:
    key = f"thing {uuid4()}"
    notifying.notify(
        Kind.FAILED, [actor.user], subject="thing", subject_id=uuid4(), key=key, data={"title": title}
    )
    return Notice.objects.get(key=key)


def titles(response: Any) -> list[str]:
    return re.findall(r'<a href="/notices/[0-9a-f-]{36}/">([^<]+)', response.text)


# --- The list


def test_everybody_reads_their_own_the_newest_first(people: People) -> None:
    for title in ("first", "second"):
        tell(people.bob, title)
    tell(people.alice, "of alice")
    page = browser(people.bob).get("/notices/")
    assert titles(page) == ["second", "first"]
    assert "Mark all as read" in page.text


def test_opening_one_leads_where_it_goes_on_and_counts_as_reading_it(people: People) -> None:
    notice = tell(people.bob, "one")
    tell(people.bob, "two")
    assert browser(people.bob).get(f"/notices/{notice.pk}/")["Location"] == "/there/"
    assert inbox.unread(people.bob.user) == 1


def test_another_persons_notice_is_not_there(people: People) -> None:
    notice = tell(people.bob, "one")
    assert browser(people.alice).get(f"/notices/{notice.pk}/").status_code == 404
    assert inbox.unread(people.bob.user) == 1


def test_who_looks_at_the_page_of_it_has_read_it(people: People) -> None:
    notice = tell(people.bob, "one")
    tell(people.bob, "two")
    inbox.read_about(people.bob.user, notice.subject_id)
    assert inbox.unread(people.bob.user) == 1


def test_all_are_marked_as_read_at_once_and_only_ones_own(people: People) -> None:
    for actor in (people.bob, people.bob, people.alice):
        tell(actor, "one")
    browser(people.bob).post("/notices/read/")
    assert [inbox.unread(actor.user) for actor in (people.bob, people.alice)] == [0, 1]


def test_a_long_list_goes_on_page_by_page_without_gap_or_repetition(people: People) -> None:
    told = [tell(people.bob, f"notice {number}").data["title"] for number in range(inbox.PAGE * 2 + 3)]
    bob, address, seen = browser(people.bob), "/notices/", []
    while address:
        page = bob.get(address)
        seen += titles(page)
        older = re.search(r'<a href="(\?before=[^"]+)">', page.text)
        address = f"/notices/{older[1]}" if older else ""
    assert seen == told[::-1]


def test_a_longer_list_asks_the_database_no_more(people: People, django_assert_max_num_queries: Any) -> None:
    bob = browser(people.bob)
    for _ in range(inbox.PAGE):
        tell(people.bob, "one")
    with django_assert_max_num_queries(8):
        bob.get("/notices/")


@pytest.mark.parametrize(
    "before",
    [
        "nonsense",
        "2026-01-01",
        "2026-01-01T00:00:00 x",
        "\0",
        "2026-99-99 1",
        "0001-01-01T00:00:00+23:59 00000000-0000-0000-0000-000000000000",
    ],
)
def test_a_place_in_the_list_that_is_none_shows_the_newest(people: People, before: str) -> None:
    tell(people.bob, "one")
    page = browser(people.bob).get("/notices/", {"before": before})
    assert titles(page) == ["one"]


# --- The settings


def test_people_choose_by_kind_and_way(people: People) -> None:
    bob = browser(people.bob)
    assert "Your workspace is ready" in bob.get("/notices/settings/").text
    bob.post("/notices/settings/", {"failed-by_mail": "on", "ready-in_berth": "on"})
    ways = preferences.all_ways(people.bob.user)
    assert ways[Kind.FAILED] == (False, True)
    assert ways[Kind.READY] == (True, False)
    assert ways[Kind.QUOTA] == (False, False)
    assert AuditEntry.objects.get().action == "notices.choose"
    assert preferences.all_ways(people.alice.user) == DEFAULTS


# --- The link in a mail


@pytest.fixture
def link(people: People) -> str:
    return preferences.unsubscribe_url(people.bob.user, Kind.FAILED).removeprefix("http://testserver")


def test_the_link_of_a_mail_asks_first_and_ends_one_kind_without_a_sign_in(people: People, link: str) -> None:
    visitor = Client(enforce_csrf_checks=True)
    assert "Unsubscribe from these mails?" in visitor.get(link).text
    assert preferences.all_ways(people.bob.user) == DEFAULTS
    answer = visitor.post(link)
    assert (answer.status_code, "Unsubscribe" in answer.text) == (200, True)
    assert preferences.all_ways(people.bob.user) == DEFAULTS | {Kind.FAILED: (True, False)}


def test_a_mail_program_ends_them_with_one_click(people: People, link: str) -> None:
    answer = Client(enforce_csrf_checks=True).post(link, {"List-Unsubscribe": "One-Click"})
    assert answer.status_code == 200  # never a redirect
    assert not preferences.all_ways(people.bob.user)[Kind.FAILED].by_mail
    assert AuditEntry.objects.get().action == "notices.unsubscribe"


def test_a_link_that_was_changed_does_nothing(people: People, link: str) -> None:
    for method in ("get", "post"):
        assert getattr(Client(), method)(link[:-3] + "x/").status_code == 404
        assert getattr(Client(), method)("/notices/unsubscribe/nonsense/").status_code == 404
    assert preferences.all_ways(people.bob.user) == DEFAULTS


# --- The installation


def test_an_installation_without_mail_is_warned_about_it(settings: Any) -> None:
    assert mail_is_set_up() == []
    settings.EMAIL_BACKEND = preferences.NO_MAIL_BACKEND
    assert [warning.id for warning in mail_is_set_up()] == ["accounts.W001"]

"""The outbox against a real mail server: what is sent, to whom, and what happens when the server is away or refuses."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from email.message import EmailMessage
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.mail.backends.smtp import EmailBackend
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from django.utils.translation import get_language
from django_q.models import OrmQ

from accounts import members
from accounts.access import Actor, role_in
from accounts.models import AuditEntry, Role, Tenant, User
from accounts.notices import notifying, outbox, preferences, words
from accounts.notices.kinds import Kind, Ways
from accounts.notices.models import Notice
from accounts.notices.words import Words
from tests.accounts.people import People
from tests.admin_forms import confirm, preview, text_of
from tests.shared.clients import browser
from tests.shared.servers.smtp import MailServer, mail_server

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    """Return words as a room above would: for members of the tenant, none for others."""
    tenant = Tenant.objects.get(slug="demo")
    if role_in(Actor(user), tenant) is None:
        return {}
    return {
        notice.pk: Words(
            title=notice.data["title"],
            text=f"It happened at {timezone.localtime(notice.at):%H:%M %Z} ({get_language()}).",
            hint="Nothing <b>to do</b>.",
            path="/workspaces/1/",
            action="Open its page",
            is_past=notice.data.get("is_past", False),
        )
        for notice in notices
    }


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_rooms", {"thing": describe})


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    with mail_server() as running:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", running.port
        settings.EMAIL_TIMEOUT = 20
        yield running


@pytest.fixture
def bob(people: People) -> User:
    people.bob.user.email = "bob@example.org"
    people.bob.user.save()
    return people.bob.user


def part(mail: EmailMessage, kind: str = "plain") -> str:
    return str(mail.get_body((kind,)).get_content())  # type: ignore[union-attr]


def tell(user: User, title: str = "“exp-1” failed", kind: Kind = Kind.FAILED, **data: Any) -> Notice:
    key = f"thing {uuid4()}"
    notifying.notify(
        kind, [user], subject="thing", subject_id=uuid4(), key=key, data={"title": title, **data}
    )
    return Notice.objects.get(key=key)


def crowd(people: People, size: int) -> list[User]:
    """Create so many members, each with an e-mail address."""
    made = [User.objects.create_user(f"member-{n}", f"member-{n}@example.org") for n in range(size)]
    for person in made:
        members.set_role(people.alice, people.demo, person.username, Role.MEMBER)
    return made


def later(notice: Notice, by: timedelta) -> None:
    """Move the notice's time into the past, as if so much time had passed."""
    Notice.objects.filter(pk=notice.pk).update(at=notice.at - by)
    notice.refresh_from_db()


def try_now(notice: Notice) -> None:
    Notice.objects.filter(pk=notice.pk, mail="waiting").update(mail_due_at=timezone.now())
    outbox.send_due()
    notice.refresh_from_db()


# --- What is sent


def test_a_mail_is_plain_text_and_html_and_sent_once(server: MailServer, bob: User) -> None:
    notice = tell(bob)
    outbox.send_due()
    outbox.send_due()
    [mail] = server.messages
    assert server.recipients == ["bob@example.org"]
    assert mail["Subject"] == "“exp-1” failed"
    assert mail["Message-ID"] == f"<{notice.pk}@testserver>"
    plain = part(mail)
    assert "Nothing <b>to do</b>." in plain
    assert "http://testserver/workspaces/1/" in plain
    html = part(mail, "html")
    assert "Nothing &lt;b&gt;to do&lt;/b&gt;." in html
    notice.refresh_from_db()
    assert notice.mail == Notice.Mail.SENT


def test_a_mail_is_in_the_readers_language_and_time_zone(server: MailServer, bob: User) -> None:
    notice = tell(bob)
    Notice.objects.filter(pk=notice.pk).update(at=timezone.now().replace(hour=12, minute=30))
    bob.time_zone, bob.language = "Asia/Tokyo", "ko"
    bob.save()
    outbox.send_due()
    plain = part(server.messages[0])
    assert "It happened at 21:30 JST (ko)." in plain
    assert '<html lang="ko">' in part(server.messages[0], "html")


def test_a_subject_is_one_line_whatever_is_in_it(server: MailServer, bob: User) -> None:
    tell(bob, "one\r\nBcc: everybody@example.org")
    outbox.send_due()
    assert server.messages[0]["Subject"] == "one Bcc: everybody@example.org"
    assert server.recipients == ["bob@example.org"]


def test_many_go_over_one_connection(server: MailServer, people: People) -> None:
    for person in crowd(people, 5):
        tell(person)
    outbox.send_due()
    assert (len(server.messages), server.sessions) == (5, 1)


def test_what_follows_within_two_minutes_goes_together(server: MailServer, bob: User) -> None:
    tell(bob, "first")
    outbox.send_due()
    for title in ("second", "third", "fourth"):
        tell(bob, title)
    tell(bob, "of another kind", kind=Kind.READY)
    outbox.send_due()
    assert [mail["Subject"] for mail in server.messages] == ["first", "of another kind"]
    Notice.objects.filter(mail="waiting").update(mail_due_at=timezone.now())
    outbox.send_due()
    assert server.messages[2]["Subject"] == "second, and 2 more"
    plain = part(server.messages[2])
    assert plain.index("second") < plain.index("third") < plain.index("fourth")
    assert set(Notice.objects.values_list("mail", flat=True)) == {"sent"}


def test_the_task_is_enqueued_with_the_notice_and_vanishes_with_it(server: MailServer, bob: User) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        tell(bob)
        assert OrmQ.objects.count() == 1
        raise RuntimeError
    assert not OrmQ.objects.exists()
    assert not Notice.objects.exists()


# --- Recipients


def test_the_same_thing_is_told_once(server: MailServer, bob: User) -> None:
    for _ in range(2):
        notifying.notify(
            Kind.FAILED, [bob], subject="thing", subject_id=uuid4(), key="one", data={"title": "failed"}
        )
    outbox.send_due()
    assert len(server.messages) == 1


def test_people_without_an_address_or_wish_get_no_mail(server: MailServer, people: People, bob: User) -> None:
    assert tell(people.alice.user).mail == Notice.Mail.NONE  # no address
    assert tell(bob, kind=Kind.QUOTA).mail == Notice.Mail.NONE  # by default not by mail
    preferences.choose(people.bob, {Kind.READY: Ways(in_berth=True, by_mail=False)})
    assert tell(bob, kind=Kind.READY).mail == Notice.Mail.NONE
    outbox.send_due()
    assert server.messages == []


def test_who_wants_to_hear_nothing_has_no_row(people: People, bob: User) -> None:
    preferences.choose(people.bob, {Kind.READY: Ways(in_berth=False, by_mail=False)})
    notifying.notify(Kind.READY, [bob], subject="thing", subject_id=uuid4(), key="one", data={})
    assert not Notice.objects.exists()


NEEDLESS: dict[str, Callable[[People, Notice], Any]] = {
    "mail turned off": lambda people, _: preferences.choose(people.bob, {Kind.FAILED: Ways(True, False)}),
    "access lost": lambda people, _: members.remove(people.alice, people.demo, "bob"),
    "deactivated": lambda people, _: members.set_active(people.admin, people.bob.user, active=False),
    "no longer so": lambda _, notice: Notice.objects.filter(pk=notice.pk).update(
        data={"title": "", "is_past": True}
    ),
}


@pytest.mark.parametrize("happens", NEEDLESS.values(), ids=NEEDLESS)
def test_waiting_mail_is_not_sent_after(
    server: MailServer, people: People, bob: User, happens: Callable[[People, Notice], Any]
) -> None:
    notice = tell(bob)
    happens(people, notice)
    try_now(notice)
    assert (notice.mail, server.messages) == (Notice.Mail.NEEDLESS, [])


def test_without_mail_in_the_installation_nothing_waits_for_it(settings: Any, bob: User) -> None:
    settings.EMAIL_BACKEND = preferences.NO_MAIL_BACKEND
    assert tell(bob).mail == Notice.Mail.NONE


# --- Faults of the mail server


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is bound, so that nobody else gets it, but not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def test_a_server_that_is_away_is_tried_for_one_person(
    server: MailServer, settings: Any, people: People, closed_port: int
) -> None:
    settings.EMAIL_PORT = closed_port
    notices = [tell(person) for person in crowd(people, 3)]
    outbox.send_due()
    assert sorted(n.mail_attempts for n in Notice.objects.all()) == [0, 0, 1]
    tried = Notice.objects.get(mail_attempts=1)
    assert "refused" in tried.mail_error.lower()
    settings.EMAIL_PORT = server.port
    outbox.send_due()
    assert len(server.messages) == 2  # the one already tried pauses
    for notice in notices:
        try_now(notice)
    assert len(server.messages) == 3


def test_pauses_grow_to_an_hour() -> None:
    minutes = [outbox.pause_after(attempts) / MINUTE for attempts in (1, 2, 3, 4, 5, 6, 7, 8, 100)]
    assert minutes == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_who_is_refused_for_now_is_tried_again_after_a_pause(server: MailServer, bob: User) -> None:
    server.replies["RCPT"] = "451 greylisted, try again later"
    notice = tell(bob)
    outbox.send_due()
    notice.refresh_from_db()
    assert (notice.mail, notice.mail_error) == (Notice.Mail.WAITING, "451 greylisted, try again later")
    assert notice.mail_due_at is not None
    assert notice.mail_due_at > timezone.now() + MINUTE / 2
    del server.replies["RCPT"]
    outbox.send_due()
    assert server.messages == []
    try_now(notice)
    assert notice.mail == Notice.Mail.SENT


@pytest.mark.parametrize("where", ["RCPT", "BODY"])
def test_a_final_refusal_is_given_up_at_once(
    server: MailServer, people: People, bob: User, where: str
) -> None:
    alice = people.alice.user
    alice.email = "alice@example.org"
    alice.save()
    server.replies["bob@example.org" if where == "RCPT" else "BODY"] = "550 no such user here"
    refused = tell(bob)
    outbox.send_due()
    server.replies.clear()
    tell(alice)
    outbox.send_due()
    refused.refresh_from_db()
    assert (refused.mail, refused.mail_error) == (Notice.Mail.GIVEN_UP, "550 no such user here")
    assert server.recipients == ["alice@example.org"]


def test_a_refused_one_in_the_middle_stops_nobody_behind_it(server: MailServer, people: People) -> None:
    server.replies["member-1@example.org"] = "550 no such user here"
    for person in crowd(people, 3):
        tell(person)
    outbox.send_due()
    assert server.recipients == ["member-0@example.org", "member-2@example.org"]


def test_a_slow_server_delays_one_attempt(server: MailServer, settings: Any, people: People) -> None:
    server.seconds, settings.EMAIL_TIMEOUT = 60, 0.1
    notices = [tell(person) for person in crowd(people, 2)]
    began = timezone.now()
    outbox.send_due()
    assert timezone.now() - began < timedelta(seconds=server.seconds / 2)
    assert sum(Notice.objects.values_list("mail_attempts", flat=True)) == 1
    server.seconds, settings.EMAIL_TIMEOUT = 0, 20
    for notice in notices:
        try_now(notice)
    assert set(Notice.objects.values_list("mail", flat=True)) == {"sent"}


def test_a_server_that_ends_the_connection_costs_a_pause(server: MailServer, bob: User) -> None:
    server.replies["MAIL"] = "421 going down"
    notice = tell(bob)
    outbox.send_due()
    notice.refresh_from_db()
    assert notice.mail == Notice.Mail.WAITING
    assert "421" in notice.mail_error
    server.replies.clear()
    try_now(notice)
    assert notice.mail == Notice.Mail.SENT


def test_an_admin_sends_a_given_up_mail_again(server: MailServer, people: People, bob: User) -> None:
    server.replies["RCPT"] = "451 not now"
    notice = tell(bob)
    later(notice, timedelta(hours=23))
    try_now(notice)
    assert notice.mail == Notice.Mail.WAITING
    later(notice, timedelta(hours=2))
    try_now(notice)
    assert notice.mail == Notice.Mail.GIVEN_UP
    server.replies.clear()
    client, path = browser(people.admin), "/admin/accounts/notice/"
    assert "Select this object for an action - bob: failed" in client.get(path).text
    page = preview(client, path, "send_again", notice)
    assert "The mail server said: 451 not now" in text_of(page)
    confirm(client, path, page)
    outbox.send_due()
    notice.refresh_from_db()
    assert notice.mail == Notice.Mail.SENT
    assert not outbox.send_again(people.admin, notice)
    assert AuditEntry.objects.filter(action="notice.send_again").count() == 1


def test_a_killed_worker_loses_no_mail(
    server: MailServer, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    notice = tell(bob)
    with monkeypatch.context() as patched:
        patched.setattr(EmailBackend, "send_messages", die)
        with pytest.raises(Killed):
            outbox.send_due()
    notice.refresh_from_db()
    assert (notice.mail, notice.mail_attempts) == (Notice.Mail.WAITING, 1)
    outbox.send_due()
    assert server.messages == []  # not while the other attempt may still run
    assert notice.mail_due_at is not None
    assert notice.mail_due_at > timezone.now() + outbox.LONGEST_TRY
    try_now(notice)
    assert (notice.mail, len(server.messages)) == (Notice.Mail.SENT, 1)


def test_words_that_cannot_be_made_hold_up_nobody_else(server: MailServer, bob: User) -> None:
    faulty, sound = tell(bob), tell(bob)
    Notice.objects.filter(pk=faulty.pk).update(data={})
    outbox.send_due()
    assert server.messages == []  # both were in one mail
    for notice in (faulty, sound):
        try_now(notice)
    assert (faulty.mail, sound.mail) == (Notice.Mail.WAITING, Notice.Mail.SENT)
    assert faulty.mail_error.startswith("KeyError")


def test_the_tick_wakes_a_pass_for_what_is_due_and_only_one(server: MailServer, bob: User) -> None:
    notice = tell(bob)
    OrmQ.objects.all().delete()
    outbox.on_tick()
    assert not OrmQ.objects.exists()  # the pass enqueued with the notice may still run
    long_ago = timezone.now() - MINUTE
    Notice.objects.filter(pk=notice.pk).update(mail_pass_at=long_ago)
    outbox.on_tick()
    outbox.on_tick()
    assert OrmQ.objects.count() == 1


def test_a_long_pass_continues_in_another(
    server: MailServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count()
    monkeypatch.setattr(outbox, "monotonic", lambda: next(clock))
    monkeypatch.setattr(outbox, "PASS_SECONDS", 2)
    for person in crowd(people, 3):
        tell(person)
    OrmQ.objects.all().delete()
    outbox.send_due()
    assert len(server.messages) == 1
    assert OrmQ.objects.count() == 1


def test_notices_are_kept_for_three_months(people: People, bob: User) -> None:
    old, recent = tell(bob), tell(bob)
    later(old, timedelta(days=91))
    later(recent, timedelta(days=89))
    outbox.on_tick()
    assert list(Notice.objects.all()) == [recent]


def test_a_fault_in_notices_stops_nothing_else(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")

    monkeypatch.setattr(notifying, "_write", broken)
    with transaction.atomic():
        notifying.notify(Kind.READY, [bob], subject="thing", subject_id=uuid4(), key="one", data={})
        User.objects.filter(pk=bob.pk).update(first_name="Bob")
    bob.refresh_from_db()
    assert bob.first_name == "Bob"


def test_a_lost_database_reaches_the_caller(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's work is undone too, so the error must reach them: they are asked to try again."""

    def lost(*_: object, **__: object) -> None:
        transaction.set_rollback(True)
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(notifying, "_write", lost)
    monkeypatch.setattr(connection, "savepoint_rollback", lost)
    with pytest.raises(OperationalError), transaction.atomic():
        notifying.notify(Kind.READY, [bob], subject="thing", subject_id=uuid4(), key="one", data={})
    transaction.set_rollback(False)

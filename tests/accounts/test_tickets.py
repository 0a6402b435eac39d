from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts import locks, members
from accounts.access import Actor, visible_tenants
from accounts.credentials import tickets, tokens
from accounts.errors import NotSignedIn, TooMany
from accounts.models import SocketTicket
from tests.accounts.people import People
from tests.shared.clients import browser
from tests.shared.concurrency import at_once


def refused(ticket: str) -> str:
    with pytest.raises(NotSignedIn) as refusal:
        tickets.redeem(ticket)
    return refusal.value.code


def test_a_ticket_lets_its_person_in_once(people: People) -> None:
    ticket, expires_at = tickets.issue(people.bob)
    assert timedelta(seconds=55) < expires_at - timezone.now() <= timedelta(seconds=60)
    assert tickets.redeem(ticket) == people.bob
    assert refused(ticket) == "ticket_unknown"


def test_only_its_digest_is_kept(people: People) -> None:
    ticket, _expires_at = tickets.issue(people.bob)
    assert ticket not in str(list(SocketTicket.objects.values()))


def test_after_a_minute_it_has_expired(people: People) -> None:
    ticket, _expires_at = tickets.issue(people.bob)
    SocketTicket.objects.update(expires_at=timezone.now())
    assert refused(ticket) == "ticket_expired"


def test_it_keeps_the_limits_of_the_token_that_asked_for_it(people: People) -> None:
    token, _secret = tokens.issue(people.admin.user, "script", ["read", "admin"], people.second)
    ticket, _expires_at = tickets.issue(Actor(people.admin.user, token))
    assert list(visible_tenants(tickets.redeem(ticket))) == [people.second]


def test_it_ends_with_its_token_and_with_its_person(people: People) -> None:
    token, _secret = tokens.issue(people.bob.user, "script", ["read"])
    ticket, _expires_at = tickets.issue(Actor(people.bob.user, token))
    tokens.revoke(people.bob, token.pk)
    assert refused(ticket) == "ticket_unknown"
    ticket, _expires_at = tickets.issue(people.bob)
    members.set_active(people.admin, people.bob.user, active=False)
    assert refused(ticket) == "ticket_unknown"


def test_it_ends_with_the_session_that_asked_for_it(people: People) -> None:
    client = browser(people.bob)
    asked = [
        client.post("/api/v1/ws-tickets/", content_type="application/json").json()["ticket"] for _ in range(2)
    ]
    assert tickets.redeem(asked[0]).user == people.bob.user
    Session.objects.all().delete()  # as when it expires: nothing signals that
    assert refused(asked[1]) == "ticket_unknown"


def test_nonsense_is_unknown(db: None) -> None:
    assert refused("") == refused("x" * 5000) == "ticket_unknown"


@pytest.mark.django_db(transaction=True)
def test_of_eight_at_once_one_comes_in(people: People) -> None:
    ticket, _expires_at = tickets.issue(people.bob)

    def try_it(_number: int) -> bool:
        try:
            tickets.redeem(ticket)
            return True
        except NotSignedIn:
            return False

    assert sum(at_once(try_it)) == 1


def make_ticket(people: People, name: str, expires_at: datetime) -> None:
    SocketTicket.objects.create(digest=name, user=people.bob.user, expires_at=expires_at)


def test_a_person_with_many_unused_tickets_gets_no_more_until_one_is_used_or_expires(people: People) -> None:
    unused = [tickets.issue(people.bob)[0] for _ in range(tickets.MOST_UNUSED)]
    with pytest.raises(TooMany) as refusal:
        tickets.issue(people.bob)
    assert refusal.value.code == "too_many_tickets"
    assert 1 <= (refusal.value.retry_after_seconds or 0) <= 60
    tickets.issue(people.admin)  # others have their own
    tickets.redeem(unused[0])
    tickets.issue(people.bob)
    SocketTicket.objects.filter(user=people.bob.user).update(expires_at=timezone.now())
    tickets.issue(people.bob)


@pytest.mark.django_db(transaction=True)
def test_asking_at_once_does_not_pass_the_limit(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "MOST_UNUSED", 3)

    def try_it(_number: int) -> bool:
        try:
            tickets.issue(people.bob)
            return True
        except TooMany:
            return False

    assert sum(at_once(try_it)) == SocketTicket.objects.count() == 3


def test_expired_ones_are_forgotten_a_few_at_a_time(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "FORGOTTEN_AT_ONCE", 2)
    for number in range(5):
        make_ticket(people, str(number), timezone.now() - 2 * tickets.KEPT)
    left = []
    for _ in range(3):
        tickets.issue(people.admin)
        left.append(SocketTicket.objects.filter(user=people.bob.user).count())
    assert left == [3, 1, 0]

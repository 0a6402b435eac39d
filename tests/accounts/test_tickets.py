from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import members
from accounts.access import Actor, visible_tenants
from accounts.credentials import tickets, tokens
from accounts.errors import NotSignedIn
from accounts.models import SocketTicket
from tests.accounts.people import People
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

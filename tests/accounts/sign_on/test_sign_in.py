import logging
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.credentials import sign_in
from accounts.credentials.sessions import stored_as
from accounts.errors import NotSignedIn, TooMany
from accounts.models import AuditEntry, SignInFailure
from accounts.trail import audit
from clusters.signals import tick
from tests.accounts.people import People
from tests.shared.clients import browser
from tests.shared.concurrency import at_once

pytestmark = pytest.mark.usefixtures("from_home")


def attempt(username: str, password: str = "wrong", address: str = "192.0.2.1") -> str:
    audit.client_address.set(address)
    try:
        sign_in.authenticate(None, username, password)
        return "in"
    except TooMany:
        return "too many"
    except NotSignedIn:
        return "refused"


def test_name_and_password_let_in(people: People) -> None:
    assert sign_in.authenticate(None, "alice", "alice-password") == people.alice.user
    assert not AuditEntry.objects.exists()  # a second factor may still follow
    sign_in.record_signed_in(people.alice.user, "password")
    fields = ("action", "outcome", "actor_name", "address", "data__by")
    assert AuditEntry.objects.values_list(*fields).get() == (
        "sign-in",
        "done",
        "alice",
        "192.0.2.1",
        "password",
    )


def test_a_wrong_password_an_unknown_name_and_a_deactivated_person_look_the_same(people: People) -> None:
    people.bob.user.is_active = False
    people.bob.user.save()
    answers = []
    for username, password in (("alice", "wrong"), ("nobody", "wrong"), ("bob", "bob-password")):
        with pytest.raises(NotSignedIn) as refusal:
            sign_in.authenticate(None, username, password)
        answers.append(vars(refusal.value))
    assert answers[0] == answers[1] == answers[2]


def test_an_unknown_name_costs_as_much_work_as_a_known_one(people: People) -> None:
    with patch.object(
        MD5PasswordHasher, "encode", autospec=True, side_effect=MD5PasswordHasher.encode
    ) as encode:
        attempt("alice")
        known = encode.call_count
        attempt("nobody")
    assert encode.call_count == 2 * known > 0


def test_the_sixth_attempt_of_a_name_from_an_address_waits(people: People) -> None:
    assert [attempt("alice") for _number in range(5)] == ["refused"] * 5
    assert attempt("alice", "alice-password") == "too many"
    assert attempt("ALICE", "alice-password") == "too many"
    assert attempt("alice", "alice-password", address="192.0.2.2") == "in"
    assert attempt("bob", "bob-password") == "in"


def test_who_waits_is_told_how_long_and_comes_in_after_that(people: People) -> None:
    for _number in range(5):
        attempt("alice")
    SignInFailure.objects.update(at=timezone.now() - timedelta(minutes=12))
    with pytest.raises(TooMany) as refusal:
        sign_in.authenticate(None, "alice", "alice-password")
    assert refusal.value.retry_after_seconds is not None
    assert 170 <= refusal.value.retry_after_seconds <= 180
    SignInFailure.objects.update(at=timezone.now() - timedelta(minutes=15, seconds=1))
    assert attempt("alice", "alice-password") == "in"


def test_trying_while_blocked_does_not_prolong_it(people: People) -> None:
    for _number in range(9):
        attempt("alice")
    assert SignInFailure.objects.count() == 5


def test_an_address_is_stopped_after_twenty_names(people: People) -> None:
    assert [attempt(f"name-{number}") for number in range(20)] == ["refused"] * 20
    assert attempt("alice", "alice-password") == "too many"
    assert attempt("alice", "alice-password", address="192.0.2.2") == "in"


def test_a_name_is_stopped_after_fifty_addresses(people: People) -> None:
    outcomes = [attempt("alice", address=f"198.51.100.{number}") for number in range(50)]
    assert outcomes == ["refused"] * 50
    assert attempt("alice", "alice-password", address="192.0.2.9") == "too many"


def test_a_whole_network_of_ipv6_is_one_who_guesses(people: People) -> None:
    outcomes = [attempt(f"name-{number}", address=f"2001:db8::{number:x}") for number in range(21)]
    assert outcomes == ["refused"] * 20 + ["too many"]
    assert attempt("alice", "alice-password", address="2001:db8:0:1::1") == "in"


def test_whoever_goes_on_trying_while_blocked_does_not_fill_the_trail(people: People) -> None:
    for _number in range(12):
        attempt("alice")
        attempt("nobody-of-this-name")
    codes = AuditEntry.objects.order_by("actor_name").values_list("actor_name", "data__code")
    told = ["sign_in_refused"] * 5 + ["too_many_sign_ins"]
    assert sorted(codes) == [("", code) for code in told] + [("alice", code) for code in told]


def test_success_forgets_the_failures_before(people: People) -> None:
    for _number in range(4):
        attempt("alice")
    assert attempt("alice", "alice-password") == "in"
    assert [attempt("alice") for _number in range(5)] == ["refused"] * 5


def test_neither_passwords_nor_unknown_names_are_kept(
    people: People, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    attempt("alice", "hunter2-secret")
    attempt("hunter2-secret", "alice")
    kept = [*AuditEntry.objects.values(), *SignInFailure.objects.values(), caplog.text]
    assert "hunter2" not in str(kept)
    refusals = AuditEntry.objects.order_by("id").values_list("actor_name", "outcome", "data__code")
    assert list(refusals) == [("alice", "refused", "sign_in_refused"), ("", "refused", "sign_in_refused")]


def test_sessions_that_ran_out_are_forgotten(people: People) -> None:
    here, gone = browser(people.alice), browser(people.bob)
    Session.objects.filter(pk=stored_as(gone.session.session_key or "")).update(expire_date=timezone.now())
    tick.send(sender=None)
    assert [row.pk for row in Session.objects.all()] == [stored_as(here.session.session_key or "")]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_do_not_slip_past_the_limit(people: People) -> None:
    outcomes = at_once(lambda _number: attempt("alice"), 12)
    assert outcomes.count("refused") == 5
    assert outcomes.count("too many") == 7

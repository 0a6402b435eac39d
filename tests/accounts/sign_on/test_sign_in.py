import logging
import re
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.utils import timezone

from accounts.credentials import devices, sign_in
from accounts.credentials.sessions import stored_as
from accounts.directory import asking
from accounts.directory.configuration import directory_from
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


def test_who_guesses_at_others_shuts_nobody_out_at_the_same_address(people: People) -> None:
    """A university's NAT is one address."""
    assert [attempt(f"name-{number}") for number in range(50)] == ["refused"] * 50
    assert [attempt("bob") for _number in range(6)] == ["refused"] * 5 + ["too many"]
    assert attempt("alice", "alice-password") == "in"


def test_an_address_that_tries_a_hundred_names_is_slowed_and_not_stopped(people: People) -> None:
    assert [attempt(f"name-{number}") for number in range(100)] == ["refused"] * 100
    assert attempt("name-100") == attempt("alice", "alice-password") == "too many"
    assert attempt("alice", "alice-password", address="192.0.2.2") == "in"
    SignInFailure.objects.update(at=timezone.now() - timedelta(seconds=2))
    assert attempt("alice", "alice-password") == "in"


def test_a_name_that_many_addresses_guess_at_is_slowed_and_not_stopped(people: People) -> None:
    outcomes = [attempt("alice", address=f"198.51.100.{number}") for number in range(20)]
    assert outcomes == ["refused"] * 20
    with pytest.raises(TooMany) as refusal:
        sign_in.authenticate(None, "alice", "alice-password")
    assert refusal.value.hint == "Wait 1 s and try again."
    SignInFailure.objects.update(at=timezone.now() - timedelta(seconds=2))
    assert attempt("alice", "alice-password", address="192.0.2.9") == "in"


def test_a_browser_that_signed_in_before_comes_in_whatever_strangers_do(people: People) -> None:
    """The door of the website, which gives the browser its cookie."""
    known, new = Client(), Client()
    alice = {"username": "alice", "password": "alice-password"}
    assert known.post("/sign-in/", alice).status_code == 302
    cookie = known.cookies[devices.COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    known.post("/sign-out/")
    for number in range(20):
        attempt("alice", address=f"198.51.100.{number}")
    for _number in range(5):
        attempt("alice", address="127.0.0.1")
    assert new.post("/sign-in/", alice).status_code == 429
    assert known.post("/sign-in/", alice).status_code == 302


def test_the_cookie_of_a_browser_gives_its_people_alone_attempts_and_not_many(people: People) -> None:
    known = Client()
    known.post("/sign-in/", {"username": "bob", "password": "bob-password"})
    known.post("/sign-out/")
    for number in range(20):
        attempt("alice", address=f"198.51.100.{number}")
    of_alice = {"username": "alice", "password": "alice-password"}
    assert known.post("/sign-in/", of_alice).status_code == 429  # it is no device of hers
    guess = {"username": "bob", "password": "wrong"}
    assert [known.post("/sign-in/", guess).status_code for _number in range(6)] == [401] * 5 + [429]


def test_strangers_get_few_attempts_at_a_name_in_the_directory_and_known_browsers_their_own(
    people: People, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LDAP = directory_from(
        {"BERTH_LDAP_URL": "ldaps://a.example.org", "BERTH_LDAP_PEOPLE_BASE": "ou=people"}
    )
    asked = list[str | None]()

    def proven(_directory: Any, _wanted: str, name: str | None, password: str, _now: Any) -> Any:
        asked.append(name)
        return {"sub": "1", "preferred_username": "dora"} if password == "right" else None

    monkeypatch.setattr(asking, "proven", proven)
    known = Client()
    dora = {"username": "dora", "password": "right"}
    assert [attempt("Dora", address=f"198.51.100.{number}") for number in range(3)] == ["refused"] * 3
    assert known.post("/sign-in/", dora).status_code == 302  # as there, it forgets the wrong ones
    known.post("/sign-out/")
    asked.clear()
    outcomes = [attempt("DORA", address=f"198.51.100.{number}") for number in range(6)]
    assert outcomes == ["refused"] * 4 + ["too many"] * 2
    assert (attempt("dora", "right"), asked) == ("too many", ["DORA"] * 4)
    assert attempt("alice", "alice-password") == "in"
    assert known.post("/sign-in/", dora).status_code == 302


def test_a_browser_knows_people_by_the_name_here_and_by_the_one_that_they_typed(people: People) -> None:
    request, response = HttpRequest(), HttpResponse()
    for user, typed in ((people.bob.user, ""), (people.alice.user, "Countess")):
        devices.remember(request, response, user, typed)
        request.COOKIES = {devices.COOKIE: response.cookies[devices.COOKIE].value}
    known = {name: devices.known(request, name) for name in ("alice", "countess", "bob", "", "carol")}
    assert known["alice"] == known["countess"] == known["bob"] is not None
    assert known[""] is None and known["carol"] is None


@pytest.mark.parametrize(
    "change", [lambda cookie: cookie[:-1], lambda cookie: "x" + cookie, lambda _cookie: "ä"]
)
def test_a_cookie_that_berth_did_not_sign_is_no_device(people: People, change: Any) -> None:
    known = Client()
    alice = {"username": "alice", "password": "alice-password"}
    known.post("/sign-in/", alice)
    known.post("/sign-out/")
    for number in range(20):
        attempt("alice", address=f"198.51.100.{number}")
    known.cookies[devices.COOKIE] = change(known.cookies[devices.COOKIE].value)
    assert known.post("/sign-in/", alice).status_code == 429


def test_a_throttled_name_that_exists_looks_like_one_that_does_not(people: People) -> None:
    answers = []
    for name in ("alice", "nobody"):
        client = Client()
        for number in range(20):
            attempt(name, address=f"198.51.100.{number}")
        answer = client.post("/sign-in/", {"username": name, "password": "wrong"})
        body = re.sub(r"[0-9a-f]{32}|[A-Za-z0-9]{64}", "", answer.content.decode().replace(name, "NAME"))
        answers.append((answer.status_code, answer["Retry-After"], sorted(client.cookies), body))
    assert answers[0] == answers[1]
    assert answers[0][0] == 429


def test_strangers_do_not_use_up_the_attempts_of_a_signed_in_person(people: People) -> None:
    for number in range(25):
        attempt("alice", address=f"198.51.100.{number % 20}")
        attempt("alice")
    sign_in.confirm(people.alice.user, "alice-password")
    outcomes = []
    for _number in range(6):
        with pytest.raises((NotSignedIn, TooMany)) as refusal:
            sign_in.confirm(people.alice.user, "wrong")
        outcomes.append(refusal.value.code)
    assert outcomes == ["wrong_password"] * 5 + ["too_many_sign_ins"]


def test_a_whole_network_of_ipv6_is_one_who_guesses(people: People) -> None:
    outcomes = [attempt("alice", address=f"2001:db8::{number:x}") for number in range(6)]
    assert outcomes == ["refused"] * 5 + ["too many"]
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

"""People choose their own passwords; one that an admin made works once, to choose another."""

from __future__ import annotations

import pytest
from allauth.mfa.totp.internal import auth as totp
from django.test import Client

from accounts.credentials import tokens
from accounts.models import AuditEntry, Scope, User
from accounts.sign_on import second_factor
from tests.accounts.people import People
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db

FIRST = {"username": "alice", "password": "alice-password"}
OWN = "correct-horse-battery"


def choice(password: str = OWN, again: str | None = None) -> dict[str, str]:
    return {"new_password1": password, "new_password2": password if again is None else again}


def is_in(client: Client) -> bool:
    return client.get("/api/v1/me/").status_code == 200


@pytest.fixture
def newcomer(people: People) -> Client:
    """Browser of alice after she gave the password that an admin made."""
    User.objects.filter(username="alice").update(password_is_first=True)
    client = Client()
    answer = client.post("/sign-in/", FIRST | {"next": "/gpus/"})
    assert answer["Location"] == "/sign-in/password/"
    return client


def test_a_first_password_lets_in_once_another_is_chosen(newcomer: Client) -> None:
    assert not is_in(newcomer)
    assert newcomer.get("/sign-in/password/").status_code == 200
    assert newcomer.post("/sign-in/password/", choice())["Location"] == "/gpus/"
    assert is_in(newcomer)
    assert not Client().login(**FIRST)
    assert Client().post("/sign-in/", FIRST | {"password": OWN})["Location"] == "/"
    assert AuditEntry.objects.filter(action="user.choose_password", actor_name="alice").count() == 1


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (choice("alice-password"), "your current password"),
        (choice("12345678"), "too common"),
        (choice(again="something-else-again"), "didn’t match"),
    ],
)
def test_bad_passwords_are_refused_at_their_field(newcomer: Client, sent: dict[str, str], why: str) -> None:
    answer = newcomer.post("/sign-in/password/", sent)
    assert (answer.status_code, why in answer.text) == (422, True)
    assert not is_in(newcomer)


def test_the_second_factor_comes_before_another_password(people: People) -> None:
    User.objects.filter(username="alice").update(password_is_first=True)
    secret = second_factor.new_secret()
    _before, now, *_later = totp.yield_hotp_counters_from_time()
    code = totp.format_hotp_value(totp.hotp_value(secret, now))  # good for half a minute more
    recovery, *_others = second_factor.turn_on(people.alice.user, secret, code)
    client = Client()
    assert client.post("/sign-in/", FIRST)["Location"] == "/sign-in/code/"
    assert client.post("/sign-in/password/", choice())["Location"] == "/sign-in/"
    assert Client().login(**FIRST)  # the password is still the same
    assert client.post("/sign-in/code/", {"code": recovery})["Location"] == "/sign-in/password/"
    assert not is_in(client)
    assert client.post("/sign-in/password/", choice())["Location"] == "/"
    assert is_in(client)


def test_people_change_their_password_and_stay_in_where_they_did(people: People) -> None:
    here, elsewhere = browser(people.alice), browser(people.alice)
    wrong = here.post("/profile/password/", choice() | {"password": "guessed"})
    assert (wrong.status_code, "Incorrect password." in wrong.text) == (401, True)
    assert here.post("/profile/password/", choice() | FIRST)["Location"] == "/profile/"
    assert (is_in(here), is_in(elsewhere)) == (True, False)


def test_who_has_no_password_here_is_led_back(people: People) -> None:
    people.alice.user.set_unusable_password()
    people.alice.user.save()
    assert browser(people.alice).get("/profile/password/")["Location"] == "/profile/"


@pytest.mark.parametrize("revokes", [True, False])
def test_a_changed_password_takes_the_api_tokens_along_if_asked_to(people: People, revokes: bool) -> None:
    token, _secret = tokens.issue(people.alice.user, "script", [Scope.READ])
    sent = choice() | FIRST | ({"revoke_tokens": "on"} if revokes else {})
    assert browser(people.alice).post("/profile/password/", sent)["Location"] == "/profile/"
    token.refresh_from_db()
    assert (token.revoked_at is not None) == revokes

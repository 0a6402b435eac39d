"""The second factor of people who sign in with a password: an app's code, a recovery code, an admin's reset."""

from __future__ import annotations

import re
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.core.management import CommandError, call_command
from django.test import Client

from accounts import members
from accounts.credentials import secrets
from accounts.errors import NotAllowed
from accounts.models import AuditEntry, SignInFailure, User
from accounts.sign_on import groups, second_factor, waiting
from accounts.sign_on.configuration import Grant
from tests.accounts.people import People
from tests.admin_forms import confirm, preview, text_of
from tests.shared.clients import browser

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("from_home")]
ALICE = {"username": "alice", "password": "alice-password"}
ADMIN = {"username": "admin", "password": "admin-password"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock that the test moves by half minutes."""

    class Clock:
        now = 1_800_000_000.0

        def half_minute(self) -> None:
            self.now += 30

    ours = Clock()
    for module in (totp, waiting):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: ours.now))
    return ours


def code_of(secret: str, clock: Any, half_minutes: int = 0) -> str:
    return str(totp.format_hotp_value(totp.hotp_value(secret, int(clock.now) // 30 + half_minutes)))


def secret_on(page: str) -> str:
    (shown,) = re.findall(r'<code class="key">([A-Z2-7 ]+)</code>', page)
    return str(shown).replace(" ", "")


def turned_on(user: User, clock: Any) -> tuple[str, list[str]]:
    secret = second_factor.new_secret()
    codes = second_factor.turn_on(user, secret, code_of(secret, clock))
    clock.half_minute()
    return secret, codes


def password_given(person: dict[str, str] = ALICE, target: str = "/profile/") -> Client:
    client = Client()
    answer = client.post("/sign-in/", person | {"next": target})
    assert answer["Location"] == "/sign-in/code/"
    return client


def is_in(client: Client) -> bool:
    return client.get("/api/v1/me/").status_code == 200


def test_the_password_alone_lets_nobody_in_any_more(people: People, clock: Any) -> None:
    secret, _codes = turned_on(people.alice.user, clock)
    client = password_given()
    assert not is_in(client)
    assert not AuditEntry.objects.filter(action="sign-in").exists()
    before = client.session.session_key
    answer = client.post("/sign-in/code/", {"code": code_of(secret, clock)})
    assert answer["Location"] == "/profile/"
    assert is_in(client)
    assert client.session.session_key != before
    assert AuditEntry.objects.get(action="sign-in").data["by"] == "password and code"


def test_a_code_counts_once_and_half_a_minute_early_or_late(people: People, clock: Any) -> None:
    secret, _codes = turned_on(people.alice.user, clock)
    clock.half_minute()
    second_factor.check(people.alice.user, code_of(secret, clock, -1))
    second_factor.check(people.alice.user, f" {code_of(secret, clock)[:3]} {code_of(secret, clock)[3:]} ")
    second_factor.check(people.alice.user, code_of(secret, clock, +1))
    for half_minutes in (-2, -1, 0, 1, 2):
        with pytest.raises(Exception, match="incorrect or was already used"):
            second_factor.check(people.alice.user, code_of(secret, clock, half_minutes))


def test_a_recovery_code_lets_in_once(people: People, clock: Any) -> None:
    _secret, codes = turned_on(people.alice.user, clock)
    assert len(set(codes)) == 10
    for client, comes_in in ((password_given(), True), (password_given(), False)):
        client.post("/sign-in/code/", {"code": codes[0]})
        assert is_in(client) == comes_in
    assert second_factor.recovery_codes_left(people.alice.user) == 9


def test_guessing_codes_is_slowed_down_whatever_the_address(people: People, clock: Any) -> None:
    secret, _codes = turned_on(people.alice.user, clock)
    client = password_given()
    answers = []
    for number in range(11):
        SignInFailure.objects.update(address=f"192.0.2.{number}")
        answers.append(client.post("/sign-in/code/", {"code": "000000"}).status_code)
    assert answers == [422] * 10 + [429]
    assert client.post("/sign-in/code/", {"code": code_of(secret, clock)}).status_code == 429
    assert not is_in(client)
    refused = AuditEntry.objects.filter(action="sign-in", outcome="refused", actor=people.alice.user)
    assert {entry.data["code"] for entry in refused} == {"wrong_code", "too_many_sign_ins"}


def test_the_wait_for_the_code_ends(people: People, clock: Any) -> None:
    secret, _codes = turned_on(people.alice.user, clock)
    changed, deactivated, late = password_given(), password_given(), password_given()
    people.alice.user.set_password("another-password")
    people.alice.user.save()
    assert changed.get("/sign-in/code/")["Location"] == "/sign-in/"
    people.alice.user.set_password("alice-password")
    people.alice.user.is_active = False
    people.alice.user.save()
    assert deactivated.get("/sign-in/code/")["Location"] == "/sign-in/"
    people.alice.user.is_active = True
    people.alice.user.save()
    clock.now += 601
    assert late.post("/sign-in/code/", {"code": code_of(secret, clock)})["Location"] == "/sign-in/"


def test_it_is_set_up_with_the_password_and_a_first_code(people: People, clock: Any) -> None:
    client = browser(people.alice)
    page = client.get("/profile/second-factor/").text
    assert 'src="data:image/svg+xml;base64,' in page
    secret = secret_on(page)
    wrong = {"code": code_of(secret, clock), "password": "guessed"}
    assert client.post("/profile/second-factor/", wrong).status_code == 401
    assert client.post("/profile/second-factor/", wrong | {"code": "1"}).status_code == 401
    assert not second_factor.is_on(people.alice.user)
    answer = client.post("/profile/second-factor/", wrong | {"password": "alice-password"})
    assert len(re.findall(r"\b\d{8}\b", answer.text)) == 10
    assert second_factor.is_on(people.alice.user)
    again = client.get("/profile/second-factor/").text
    assert secret not in again
    assert not re.search(r"\b\d{8}\b", again)


def test_secrets_lie_encrypted_in_the_database_and_in_the_session(people: People, clock: Any) -> None:
    client = browser(people.alice)
    client.get("/profile/second-factor/")
    kept = client.session["second_factor_set_up"]
    secret = secrets.decrypt(kept)
    second_factor.turn_on(people.alice.user, secret, code_of(secret, clock))
    stored = str(list(Authenticator.objects.values_list("data")))
    assert secret not in stored + kept
    assert secrets.decrypt(Authenticator.objects.get(type="totp").data["secret"]) == secret


def test_new_recovery_codes_and_removal_ask_for_the_password(people: People, clock: Any) -> None:
    _secret, codes = turned_on(people.alice.user, clock)
    client = browser(people.alice)
    for path in ("/profile/second-factor/recovery-codes/", "/profile/second-factor/remove/"):
        assert client.post(path, {"password": "wrong"}).status_code == 401
    page = client.post("/profile/second-factor/recovery-codes/", {"password": "alice-password"})
    fresh = set(re.findall(r"\b\d{8}\b", page.text))
    assert len(fresh) == 10
    assert not fresh & set(codes)
    client.post("/profile/second-factor/remove/", {"password": "alice-password"})
    assert not Authenticator.objects.exists()
    done = AuditEntry.objects.filter(outcome="done").order_by("id").values_list("action", flat=True)
    assert list(done) == [f"second-factor.{what}" for what in ("on", "recovery-codes", "off")]


def test_an_admin_resets_it_for_who_lost_everything(people: People, clock: Any) -> None:
    turned_on(people.alice.user, clock)
    with pytest.raises(NotAllowed):
        second_factor.reset(people.bob, people.alice.user)
    second_factor.reset(people.admin, people.alice.user)
    assert Client().post("/sign-in/", ALICE)["Location"] == "/"
    assert AuditEntry.objects.get(action="second-factor.reset").actor == people.admin.user


def test_the_admins_page_says_whose_it_resets_before_it_does(people: People, clock: Any) -> None:
    turned_on(people.alice.user, clock)
    admin, page_of_people = browser(people.admin), "/admin/accounts/user/"
    page = preview(admin, page_of_people, "reset_second_factor", people.alice.user, people.bob.user)
    assert "They have no second factor." in text_of(page)
    assert second_factor.is_on(people.alice.user)
    assert "1 second factor is reset." in text_of(confirm(admin, page_of_people, page))
    assert not second_factor.is_on(people.alice.user)


def test_an_operator_resets_it_at_the_command_line(people: People, clock: Any) -> None:
    turned_on(people.admin.user, clock)
    call_command("reset_second_factor", "admin", stdout=StringIO())
    assert not second_factor.is_on(people.admin.user)
    assert AuditEntry.objects.get(action="second-factor.reset").actor is None
    for name in ("admin", "nobody"):
        with pytest.raises(CommandError):
            call_command("reset_second_factor", name)


def test_staff_who_need_one_set_it_up_at_sign_in(people: People, clock: Any, settings: Any) -> None:
    settings.STAFF_NEED_SECOND_FACTOR = True
    client = Client()
    assert client.post("/sign-in/", ADMIN | {"next": "/admin/"})["Location"] == "/sign-in/set-up/"
    page = client.get("/sign-in/set-up/").text
    assert client.get("/admin/")["Location"].startswith("/admin/login/")
    assert client.post("/sign-in/set-up/", {"code": "000000"}).status_code == 422
    answer = client.post("/sign-in/set-up/", {"code": code_of(secret_on(page), clock)})
    assert b"recovery codes" in answer.content
    assert b'href="/admin/"' in answer.content
    assert client.get("/admin/").status_code == 200
    assert client.post("/profile/second-factor/remove/", {"password": "admin-password"}).status_code == 403
    assert Client().post("/sign-in/", ALICE)["Location"] == "/"  # others need none


@pytest.mark.parametrize("by", ["hand", "group"])
def test_who_becomes_an_admin_comes_in_anew_with_it(people: People, settings: Any, by: str) -> None:
    bob = people.bob.user
    before = browser(people.bob)
    settings.STAFF_NEED_SECOND_FACTOR = True
    if by == "hand":
        members.set_admin(people.admin, bob, is_admin=True)
    else:
        groups.follow(bob, frozenset({"admins"}), (Grant("admins", "admin"),))
    assert not is_in(before)
    after = Client()
    after.force_login(bob if by == "group" else User.objects.get(pk=bob.pk))
    assert is_in(after)


def test_who_has_no_password_here_sets_it_up_where_they_sign_in(people: People) -> None:
    people.alice.user.set_unusable_password()
    people.alice.user.save()
    client = browser(people.alice)
    page = client.get("/profile/second-factor/")
    assert b"your sign-in provider" in page.content
    assert client.post("/profile/second-factor/", {"code": "1", "password": "x"}).status_code == 403


def test_passwords_can_be_the_admins_way_in_alone(people: People, settings: Any) -> None:
    settings.PASSWORDS_FOR = "admins"
    answer = Client().post("/sign-in/", ALICE)
    assert answer.status_code == 403
    assert b"Only admins" in answer.content
    assert Client().post("/sign-in/", ALICE | {"password": "wrong"}).status_code == 401
    assert Client().post("/sign-in/", ADMIN)["Location"] == "/"


def test_no_address_of_allauth_is_reachable(people: People) -> None:
    pages = ("accounts/signup", "accounts/login", "signup", "2fa", "3rdparty", "accounts/password/reset")
    for path in pages:
        assert browser(people.alice).get(f"/{path}/").status_code == 404


@pytest.mark.parametrize("code", ["", " ", "\0", "١٢٣٤٥٦", "x" * 41, "-1", "1e5", "🔑", "000000\n000000"])
def test_whatever_is_typed_as_a_code_is_refused_in_words(people: People, clock: Any, code: str) -> None:
    turned_on(people.alice.user, clock)
    client = password_given()
    answer = client.post("/sign-in/code/", {"code": code})
    assert answer.status_code == 422
    assert b'role="alert"' in answer.content or b'class="error"' in answer.content
    assert not is_in(client)

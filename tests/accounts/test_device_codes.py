"""A terminal signs in by a code: only with the word of a signed-in person, once, and for ten minutes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import members
from accounts.credentials import device_codes, sessions, tokens
from accounts.models import APIToken, AuditEntry, DeviceCode
from tests.accounts.people import People
from tests.shared.clients import ask, browser


@pytest.fixture
def begun(people: People) -> dict[str, Any]:
    """What a terminal is answered that begins."""
    answer = ask(Client(), "POST", "device/code/", {"name": "berth on laptop"})
    assert answer.status_code == 201
    found: dict[str, Any] = answer.json()
    return found


def polled(begun: dict[str, Any]) -> Any:
    return ask(Client(), "POST", "device/token/", {"device_code": begun["device_code"]})


def code_of(answer: Any) -> str:
    return str(answer.json()["error"]["code"])


def says(client: Client, begun: dict[str, Any], answer: str = "allow") -> Any:
    return client.post("/device/", {"code": begun["user_code"], "answer": answer})


def test_a_person_allows_it_and_it_gets_one_token(people: People, begun: dict[str, Any]) -> None:
    assert (polled(begun).status_code, code_of(polled(begun))) == (400, "authorization_pending")
    window = browser(people.bob)
    asks = window.get(begun["verification_uri_complete"].removeprefix("http://testserver"))
    assert asks.context["asks"].name == "berth on laptop"
    assert says(window, begun).status_code == 200
    token = polled(begun)
    assert (token.json()["username"], token["Cache-Control"]) == ("bob", "no-store")
    assert tokens.authenticate(token.json()["token"]).scopes == ["read", "workspaces", "jobs", "volumes"]
    assert code_of(polled(begun)) == "expired_token"
    assert APIToken.objects.count() == 1
    told = AuditEntry.objects.filter(actor=people.bob.user).values_list("action", flat=True)
    assert set(told) >= {"device.allow", "token.create"}


def test_nothing_of_it_is_kept_in_clear(begun: dict[str, Any]) -> None:
    assert begun["device_code"] not in str(list(DeviceCode.objects.values()))


@pytest.mark.parametrize("case", ["refused", "expired", "unknown", "deactivated", "signed out"])
def test_what_was_not_allowed_or_no_longer_holds_is_answered_alike(
    people: People, begun: dict[str, Any], case: str
) -> None:
    window = browser(people.bob)
    if case in ("deactivated", "signed out"):
        says(window, begun)
    match case:
        case "refused":
            says(window, begun, "refuse")
        case "expired":
            DeviceCode.objects.update(expires_at=timezone.now())
        case "unknown":
            begun = begun | {"device_code": "unknown"}
        case "deactivated":
            members.set_active(people.admin, people.bob.user, active=False)
        case "signed out":
            sessions.sign_out_everywhere(people.bob)
    answer = polled(begun)
    assert (answer.status_code, code_of(answer)) == (400, "expired_token")
    assert not APIToken.objects.exists()


def test_an_answered_or_wrong_code_is_refused_and_guessing_is_slow(
    people: People, begun: dict[str, Any]
) -> None:
    says(browser(people.bob), begun)
    window = browser(people.carol)
    assert says(window, begun).status_code == 422
    assert says(window, {"user_code": "BBBB-BBBB"}, "refuse").status_code == 422
    codes = [
        says(window, {"user_code": "BBBB-BBBC"}).status_code for _ in range(device_codes.LOOKED_UP_PER_MINUTE)
    ]
    assert codes[-1] == 429
    assert polled(begun).json()["username"] == "bob"


def test_the_scope_of_admins_is_for_admins(people: People) -> None:
    for person, status in ((people.bob, 422), (people.admin, 200)):
        begun = ask(Client(), "POST", "device/code/", {"name": "t", "scopes": ["read", "admin"]}).json()
        assert says(browser(person), begun).status_code == status


def test_one_address_begins_few_and_what_has_expired_is_deleted(people: People) -> None:
    def begin() -> int:
        return ask(Client(), "POST", "device/code/", {"name": "t"}).status_code

    assert [begin() for _ in range(device_codes.BEGUN_PER_MINUTE + 1)][-2:] == [201, 429]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_rate")
    DeviceCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert (begin(), DeviceCode.objects.count()) == (201, 1)
    assert ask(Client(), "POST", "device/code/", {"name": "a\nb"}).status_code in (400, 422)


def test_who_floods_loses_their_own_codes(
    people: People, begun: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(address: str) -> int:
        return ask(Client(REMOTE_ADDR=address), "POST", "device/code/", {"name": "t"}).status_code

    monkeypatch.setattr(device_codes, "MOST_OPEN", 4)
    assert [begin(f"2001:db8:7:{subnet}::1") for subnet in range(6)] == [201] * 6
    assert DeviceCode.objects.count() == 4
    assert code_of(polled(begun)) == "authorization_pending"
    assert says(browser(people.bob), begun).status_code == 200
    assert begin("192.0.2.7") == 201
    assert polled(begun).json()["username"] == "bob"


def test_codes_are_read_however_they_are_typed() -> None:
    assert (
        device_codes.plain(" bcdf ghjk\n") == device_codes.plain(device_codes.shown("BCDFGHJK")) == "BCDFGHJK"
    )

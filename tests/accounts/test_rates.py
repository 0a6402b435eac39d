"""Rate limits: counted per person and address, over all processes, and refused in words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts.errors import TooMany
from accounts.models import AuditEntry, Scope
from accounts.rest import rates
from tests.cast import Cast, make_cast
from tests.shared.clients import ask, script
from tests.shared.concurrency import at_once
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
LAUNCH = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1"}


@pytest.fixture
def cast(request: pytest.FixtureRequest) -> Cast:
    return make_cast()


def codes(*answers: Any) -> list[int]:
    return [answer.status_code for answer in answers]


@pytest.fixture
def at_most(settings: Any) -> Any:
    """Set the limits: at_most(read=2) allows two reads a minute."""
    return lambda **rates: setattr(settings, "API_RATES", settings.API_RATES | rates)


def test_who_asks_too_often_is_told_how_long_to_wait(cast: Cast, at_most: Any) -> None:
    at_most(read=2)
    bob = script(cast.bob)
    assert codes(*(ask(bob, "GET", "me/") for _ in range(2))) == [200, 200]
    refused = ask(bob, "GET", "me/")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_often")
    assert 1 <= int(refused["Retry-After"]) <= 30  # two a minute: the next one fits after 30 s
    assert "2 requests" in refused.json()["error"]["message"]
    assert refused.json()["error"]["hint"]


def test_a_bucket_drains_with_time(cast: Cast, at_most: Any) -> None:
    at_most(read=1)
    bob = script(cast.bob)
    assert codes(ask(bob, "GET", "me/"), ask(bob, "GET", "me/")) == [200, 429]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_rate SET empty_at = empty_at - interval '61 seconds'")
    assert codes(ask(bob, "GET", "me/"), ask(bob, "GET", "me/")) == [200, 429]


def test_a_persons_tokens_share_what_their_browser_does_not(cast: Cast, at_most: Any) -> None:
    at_most(read=2)
    browser = Client()
    browser.force_login(cast.bob.user)
    assert codes(*(ask(script(cast.bob), "GET", "me/") for _ in range(3))) == [200, 200, 429]
    assert codes(ask(browser, "GET", "me/"), ask(script(cast.alice), "GET", "me/")) == [200, 200]


def test_launches_writes_and_reads_are_counted_apart(cast: Cast, at_most: Any) -> None:
    at_most(read=3, write=2, launch=1)
    bob = script(cast.bob)
    launched = [ask(bob, "POST", "workspaces/", LAUNCH | {"name": f"exp-{n}"}) for n in range(2)]
    assert codes(*launched) == [201, 429]
    path = f"workspaces/{launched[0].json()['id']}/"
    assert codes(ask(bob, "POST", f"{path}clone/")) == [429]
    assert codes(*(ask(bob, "POST", f"{path}stop/") for _ in range(3))) == [202, 200, 429]
    estimated = ask(bob, "POST", "estimate/", LAUNCH | {"name": "x"})
    looks = [ask(bob, "GET", path), ask(bob, "POST", "ws-tickets/"), ask(bob, "GET", path)]
    assert codes(estimated, *looks) == [200, 200, 201, 429]
    assert Workspace.objects.count() == 1


def test_refusals_are_counted_and_a_flood_leaves_no_flood_in_the_trail(cast: Cast, at_most: Any) -> None:
    at_most(write=2)
    reader = script(cast.bob, Scope.READ)
    asked = [ask(reader, "POST", "ssh-keys/", {"name": "x", "public_key": "y"}) for _ in range(6)]
    assert codes(*asked) == [403, 403, 429, 429, 429, 429]
    assert AuditEntry.objects.filter(outcome="refused").count() == 2


def test_with_an_idempotency_key_each_request_counts_once(cast: Cast, at_most: Any) -> None:
    at_most(launch=2)
    bob = script(cast.bob)
    launched = [
        ask(bob, "POST", "workspaces/", LAUNCH | {"name": "exp"}, **{"Idempotency-Key": "k"})
        for _ in range(3)
    ]
    assert codes(*launched) == [201, 201, 429]
    assert launched[2]["Retry-After"]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer brt_wrong"}])
def test_strangers_are_counted_by_address(cast: Cast, at_most: Any, headers: dict[str, str]) -> None:
    at_most(stranger=2)

    def come_from(address: str) -> Any:
        return Client(headers=headers, REMOTE_ADDR=address).get("/api/v1/me/")

    assert codes(*(come_from("192.0.2.1") for _ in range(3))) == [401, 401, 429]
    assert codes(come_from("192.0.2.2")) == [401]
    assert codes(*(come_from(f"2001:db8::{n}") for n in range(3))) == [401, 401, 429]
    assert codes(come_from("2001:db8:0:1::1")) == [401]
    assert codes(ask(script(cast.bob), "GET", "me/")) == [200]


def test_the_schema_is_counted_too(at_most: Any) -> None:
    at_most(stranger=1)
    assert codes(Client().get("/api/v1/me/"), Client().get("/api/schema/")) == [401, 429]


def test_zero_means_no_limit(cast: Cast, at_most: Any) -> None:
    at_most(read=0)
    bob = script(cast.bob)
    assert set(codes(*(ask(bob, "GET", "me/") for _ in range(5)))) == {200}


def test_who_has_not_come_for_long_is_forgotten(at_most: Any) -> None:
    rates.count("stranger/old", 10)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_rate SET empty_at = empty_at - interval '2 hours'")
        rates.count("stranger/new", 10)
        cursor.execute("SELECT bucket FROM accounts_rate")
        assert cursor.fetchall() == [("stranger/new",)]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_more_than_there_is() -> None:
    passed: list[bool] = []

    def ask_ten_times(_number: int) -> None:
        for _ in range(10):
            with suppress(TooMany):
                rates.count("read/token/many", 10)
                passed.append(True)

    at_once(ask_ten_times, 4)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_rate")
    assert 10 <= len(passed) <= 13  # a few more if the bucket drained meanwhile


def test_whoever_comes_in_no_known_way_is_counted_too(cast: Cast, at_most: Any) -> None:
    at_most(stranger=2)
    basic = {"Authorization": "Basic YTpi"}
    assert codes(*(Client().get("/api/v1/me/", headers=basic) for _ in range(3))) == [401, 401, 429]
    forged = Client(enforce_csrf_checks=True, REMOTE_ADDR="192.0.2.7")
    forged.force_login(cast.bob.user)
    assert codes(*(forged.post("/api/v1/ws-tickets/") for _ in range(3))) == [403, 403, 429]


def test_people_of_ipv4_are_told_apart_also_where_they_come_over_ipv6(db: None, at_most: Any) -> None:
    at_most(stranger=1)
    addresses = ("::ffff:192.0.2.1", "::ffff:192.0.2.2", "192.0.2.2")
    answers = (Client(REMOTE_ADDR=address).get("/api/v1/me/") for address in addresses)
    assert codes(*answers) == [401, 401, 429]

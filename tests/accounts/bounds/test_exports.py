"""Exports as CSV: bounded in rows and time, one at a time per person, with a rate of their own."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from accounts.access import Actor
from accounts.errors import TooMany
from accounts.rest import csv as exports
from accounts.rest.csv import Turn
from accounts.trail import audit, trail_export
from tests.accounts.people import People
from tests.shared.clients import api, ask, browser
from tests.shared.concurrency import at_once

EXPORT = "audit/?format=csv&action=test"


@pytest.fixture
def five(people: People) -> People:
    for number in range(5):
        audit.record(people.alice, "test", tenant=people.demo, data={"n": number})
    return people


def rows_of(answer: Any) -> list[list[str]]:
    async def read() -> str:
        return "".join([part.decode() async for part in answer])

    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(async_to_sync(read)())))


@pytest.mark.parametrize(("most", "lines"), [(5, 6), (6, 6), (4, 6), (2, 4)])
def test_an_export_of_too_many_rows_ends_and_says_so(
    five: People, monkeypatch: pytest.MonkeyPatch, most: int, lines: int
) -> None:
    monkeypatch.setattr(exports, "MOST_ROWS", most)
    monkeypatch.setattr(trail_export, "ROWS_AT_ONCE", 2)
    rows = rows_of(ask(api(five.alice), "GET", EXPORT))
    assert len(rows) == lines
    assert (len(rows[-1]) == 1 and rows[-1][0].startswith("NOT COMPLETE")) is (most < 5)
    assert len([row for row in rows if row[-1].startswith('{"n"')]) == min(most, 5)


def test_an_export_that_takes_too_long_ends_and_says_so(
    five: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "LONGEST_SECONDS", -1)
    assert rows_of(ask(api(five.alice), "GET", EXPORT))[-1][0].startswith("NOT COMPLETE")


def test_a_search_through_too_much_ends_the_export_too(five: People, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(entries: Any) -> AsyncIterator[list[str]]:
        yield ["at\n"]
        await trail_export._read(entries.extra(select={"slept": "pg_sleep(5)"}))
        yield ["never\n"]

    monkeypatch.setattr(trail_export, "LONGEST_QUERY_SECONDS", 0.05)
    monkeypatch.setattr("accounts.rest.views_audit.csv_parts", slow)
    rows = rows_of(ask(api(five.alice), "GET", EXPORT))
    assert [row[0][:12] for row in rows] == ["at", "NOT COMPLETE"]
    assert len(rows_of(ask(api(five.admin), "GET", "audit/?format=csv&action=none"))) == 2


def test_one_at_a_time_per_person(five: People) -> None:
    running = ask(api(five.alice), "GET", EXPORT)
    for client in (api(five.alice), browser(five.alice)):
        second = ask(client, "GET", EXPORT)
        assert (second.status_code, second.json()["error"]["code"]) == (429, "export_under_way")
        assert 1 <= int(second["Retry-After"]) <= exports.TURN_SECONDS
        assert second["Content-Type"] == "application/json"
    usage = ask(api(five.alice), "GET", "usage/?format=csv")
    assert usage.status_code == 429
    assert ask(api(five.alice), "GET", "audit/").status_code == 200
    assert len(rows_of(ask(api(five.admin), "GET", EXPORT))) == 6
    assert len(rows_of(running)) == 6
    assert len(rows_of(ask(api(five.alice), "GET", EXPORT))) == 6


def test_a_turn_that_nobody_renews_goes_to_the_next_and_the_old_export_ends(five: People) -> None:
    dead = ask(api(five.alice), "GET", EXPORT)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_rate SET empty_at = now() WHERE bucket LIKE 'exporting/%%'")
    next_one = ask(api(five.alice), "GET", EXPORT)
    assert [row[0][:12] for row in rows_of(dead)] == ["NOT COMPLETE"]
    assert ask(api(five.alice), "GET", EXPORT).status_code == 429
    assert len(rows_of(next_one)) == 6


def test_a_head_request_begins_no_export(five: People) -> None:
    assert ask(api(five.alice), "HEAD", EXPORT)["Content-Type"].startswith("text/csv")
    assert len(rows_of(ask(api(five.alice), "GET", EXPORT))) == 6


def test_exports_have_a_rate_of_their_own(five: People, settings: Any) -> None:
    settings.API_RATES = settings.API_RATES | {"export": 2}
    client = api(five.alice)
    for _ in range(2):
        rows_of(ask(client, "GET", EXPORT))
    third = ask(browser(five.alice), "GET", EXPORT)
    assert (third.status_code, third.json()["error"]["code"]) == (429, "too_often")
    assert "export" in third.json()["error"]["message"]
    assert 1 <= int(third["Retry-After"]) <= 60
    assert ask(client, "GET", "audit/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gets_the_turn(people: People) -> None:
    def begin(_number: int) -> bool:
        try:
            Turn(Actor(people.alice.user))
        except TooMany:
            return False
        return True

    assert sum(at_once(begin, 6)) == 1
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM accounts_rate")

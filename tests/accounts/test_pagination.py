from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import AuditEntry, SSHKey
from tests.accounts.people import People
from tests.shared.clients import api, ask

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pages(script: Any, first: str) -> list[list[dict[str, Any]]]:
    """Follow `next` to the end, as a client does."""
    found, following = [], f"/api/v1/{first}"
    while following:
        body = script.get(following).json()
        found.append(body["results"])
        following = body["next"]
        assert len(found) < 100
    return found


def make_keys(people: People, seconds: list[int]) -> None:
    SSHKey.objects.filter(user=people.bob.user).delete()
    made = SSHKey.objects.bulk_create(
        SSHKey(user=people.bob.user, name=str(number), fingerprint=str(number))
        for number in range(len(seconds))
    )
    for key, second in zip(made, seconds, strict=True):
        key.created_at = NOON + timedelta(seconds=second)
    SSHKey.objects.bulk_update(made, ["created_at"])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seconds=st.lists(st.integers(0, 3), max_size=12), limit=st.integers(1, 5))
def test_next_gives_every_row_once_newest_first(people: People, seconds: list[int], limit: int) -> None:
    make_keys(people, seconds)
    found = pages(api(people.bob), f"ssh-keys/?limit={limit}")
    rows = [row for page in found for row in page]
    assert len({row["id"] for row in rows}) == len(rows) == len(seconds)
    assert [row["created_at"] for row in rows] == sorted((row["created_at"] for row in rows), reverse=True)
    assert all(len(page) == limit for page in found[:-1])


def test_rows_that_come_or_go_meanwhile_shift_nothing(people: People) -> None:
    make_keys(people, [1, 2, 3, 4])
    script = api(people.bob)
    first = script.get("/api/v1/ssh-keys/?limit=2").json()
    SSHKey.objects.filter(pk=first["results"][1]["id"]).delete()
    SSHKey.objects.create(user=people.bob.user, name="new", fingerprint="new")
    second = script.get(first["next"]).json()
    assert [row["name"] for row in second["results"]] == ["1", "0"]


def test_next_is_absolute_and_keeps_the_filters(people: People) -> None:
    for _number in range(3):
        AuditEntry.objects.create(action="wanted")
        AuditEntry.objects.create(action="other")
    script = api(people.admin)
    following = ask(script, "GET", "audit/?limit=2&action=wanted").json()["next"]
    assert following.startswith("http://testserver/api/v1/audit/?")
    assert {"limit": ["2"], "action": ["wanted"]}.items() <= parse_qs(urlsplit(following).query).items()
    last = script.get(following).json()
    assert [entry["action"] for entry in last["results"]] == ["wanted"]
    assert last["next"] is None


def test_fifty_unless_asked_and_five_hundred_at_most(people: People) -> None:
    AuditEntry.objects.bulk_create(AuditEntry(action="many") for _number in range(501))
    script = api(people.admin)
    assert len(ask(script, "GET", "audit/").json()["results"]) == 50
    assert len(ask(script, "GET", "audit/?limit=500").json()["results"]) == 500


@pytest.mark.parametrize("limit", ["0", "-1", "501", "many", "", "1.5", "٣", "9" * 5000])
def test_another_limit_is_400(people: People, limit: str) -> None:
    answer = ask(api(people.bob), "GET", f"ssh-keys/?limit={limit}")
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["limit"]


@pytest.mark.parametrize("cursor", ["", "x", "%00", "a:b:c", "WyJ4IiwieSJd"])
def test_a_cursor_that_was_not_given_out_is_400(people: People, cursor: str) -> None:
    answer = ask(api(people.bob), "GET", f"ssh-keys/?cursor={cursor}")
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["cursor"]

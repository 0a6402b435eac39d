"""The audit trail: who may read which entries, their sentences, and the CSV."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone, translation

from accounts import members
from accounts.credentials import tokens
from accounts.models import AuditEntry, Role, Scope, User
from accounts.spreadsheets import safe
from accounts.trail import audit, trail_words
from accounts.trail.trail_export import csv_parts
from tests.accounts.people import People
from tests.shared.clients import api, ask, browser


@pytest.fixture
def told(people: People) -> People:
    """Entries: two in demo (carol is added, her role changes), one in second, one without a tenant."""
    members.set_role(people.alice, people.demo, "carol", Role.VIEWER)
    members.set_role(people.alice, people.demo, "carol", Role.MEMBER)
    audit.record(people.carol, "workspace.launch", tenant=people.second, data={"name": "secret-plan"})
    audit.record(people.bob, "sign-in", target=people.bob.user)
    return people


def actions(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [entry["action"] for entry in answer.json()["results"]]


def table(answer: Any) -> list[list[str]]:
    """Cells of a streamed CSV, without the header."""

    async def read() -> str:
        return "".join([part.decode() async for part in answer])

    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(async_to_sync(read)())))[1:]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("search=carol", ["member.change", "member.add"]),
        ("search=CAROL+viewer", ["member.add"]),
        ("search=nobody", []),
        ("action=member", ["member.change", "member.add"]),
        ("action=member.add", ["member.add"]),
        ("action=mem", []),
        ("actor=alice&outcome=done", ["member.change", "member.add"]),
        ("outcome=refused", []),
        ("tenant=second", []),
    ],
)
def test_an_owner_narrows_the_trail_of_their_tenant(told: People, asked: str, found: list[str]) -> None:
    assert actions(ask(api(told.alice), "GET", f"audit/?{asked}")) == found


def test_admins_see_what_happened_in_no_tenant_too_but_not_by_a_token_that_is_bound(told: People) -> None:
    assert len(actions(ask(api(told.admin), "GET", "audit/"))) == 4 + 1  # the request's token
    bound = api(told.admin, Scope.READ, Scope.ADMIN, tenant=told.second)
    assert set(actions(ask(bound, "GET", "audit/"))) == {"workspace.launch", "token.create"}


def test_since_and_until_take_moments_and_whole_days(told: People) -> None:
    AuditEntry.objects.filter(action="member.add").update(at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    script = api(told.alice)
    assert actions(ask(script, "GET", "audit/?until=2026-03-01")) == ["member.add"]
    assert actions(ask(script, "GET", "audit/?until=2026-02-28")) == []
    assert actions(ask(script, "GET", "audit/?since=2026-03-01&until=2026-03-01T23:30:00Z")) == ["member.add"]
    assert actions(ask(script, "GET", "audit/?until=2026-03-01T23:00:00Z")) == []
    answer = ask(script, "GET", "audit/?until=2026-02-30&outcome=maybe")
    assert answer.status_code == 400
    assert set(answer.json()["error"]["fields"]) == {"until", "outcome"}


def test_a_whole_day_is_one_where_the_person_is(told: People) -> None:
    """Half past eleven at night in UTC is the next morning in Seoul."""
    AuditEntry.objects.filter(action="member.add").update(at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    User.objects.filter(username="alice").update(time_zone="Asia/Seoul")
    client = browser(told.alice)
    assert "added carol" in client.get("/audit/?until=2026-03-02").text
    assert "added carol" not in client.get("/audit/?until=2026-03-01").text


def test_the_export_has_every_line_that_is_found_and_no_other(told: People) -> None:
    rows = table(ask(api(told.alice), "GET", "audit/?format=csv&action=member"))
    assert [row[3] for row in rows] == ["member.change", "member.add"]
    assert [row[4] for row in rows] == ["demo", "demo"]
    answer = browser(told.admin).get("/api/v1/audit/?format=csv")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert len(table(answer)) == AuditEntry.objects.count()


def test_an_export_that_is_refused_is_json_like_every_refusal(told: People) -> None:
    answer = ask(api(told.bob), "GET", "audit/?format=csv")
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "owners_only"
    assert answer["Content-Type"] == "application/json"


def test_a_long_export_neither_skips_nor_repeats(
    told: People, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr("accounts.trail.trail_export.ROWS_AT_ONCE", 3)
    now = timezone.now()
    for number in range(8):
        entry = audit.record(told.alice, "test", data={"n": number})
        AuditEntry.objects.filter(pk=entry.pk).update(at=now - timedelta(seconds=number // 4))
    entries = AuditEntry.objects.filter(action="test").select_related("tenant")

    async def lines() -> list[str]:
        return [text async for part in csv_parts(entries) for text in part]

    with django_assert_num_queries(3 * 4):  # each in a transaction of its own, with a limit of time
        parts = async_to_sync(lines)()
    rows = list(csv.reader(io.StringIO("".join(parts))))[1:]
    assert len(rows) == len({row[8] for row in rows}) == 8


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1+1", "\t=1", "\r=1", "\n=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert safe(text) == f"'{text}"
    assert safe(f"a{text}") == f"a{text}"


def test_the_page_tells_it_in_sentences_in_the_reader_s_language(told: People) -> None:
    page = browser(told.alice).get("/audit/").text
    assert "alice added carol as viewer." in page
    assert "secret-plan" not in page
    assert "signed in" not in page
    assert "carol launched the workspace “secret-plan”." in browser(told.admin).get("/audit/").text


def test_every_sentence_can_be_said_of_a_line_that_knows_nothing(people: People) -> None:
    for outcome in AuditEntry.Outcome:
        for action in (*trail_words.DONE, "something.new"):
            words = trail_words.sentence(AuditEntry(action=action, outcome=outcome, actor_name="bob"))
            assert words.startswith(("bob", "A sign-in as bob"))
            assert "%(" not in words


def test_what_people_call_themselves_cannot_break_the_page(told: People) -> None:
    audit.record(told.alice, "workspace.stop", tenant=told.demo, data={"name": "<script>%(actor)s</script>"})
    page = browser(told.alice).get("/audit/").text
    assert "&lt;script&gt;%(actor)s" in page


def test_older_entries_are_on_the_next_page(told: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.rest.pagination.DEFAULT_LIMIT", 1)
    client = browser(told.alice)
    first = client.get("/audit/?action=member")
    assert "gave carol the role" in first.text
    cursor = first.context["following"]
    older = client.get("/audit/", {"action": "member", "cursor": cursor}).text
    assert "added carol" in older
    assert "gave carol the role" not in older
    assert client.get("/audit/?cursor=made-up")["Location"] == "/audit/"


def test_a_line_names_what_it_is_about(people: People) -> None:
    token, _secret = tokens.issue(people.bob.user, "nightly", ["read"], people.demo)
    with translation.override("en"):
        entry = audit.record(people.alice, "token.revoke", target=token, tenant=people.demo)
    assert trail_words.sentence(entry) == "alice revoked the API token “nightly”."


def test_a_loop_of_refusals_fills_no_table(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_ALIKE", 3)
    script = api(people.bob)
    for number in range(6):
        assert ask(script, "DELETE", f"ssh-keys/{uuid4()}/").status_code == 404, number
    refused = AuditEntry.objects.filter(outcome=AuditEntry.Outcome.REFUSED)
    assert refused.count() == 3
    refused.update(at=timezone.now() - audit.ALIKE_WITHIN)
    ask(script, "DELETE", f"ssh-keys/{uuid4()}/")
    ask(script, "POST", "tenants/", {"slug": "third", "name": "Third"})
    assert refused.count() == 5

"""Usage and budgets in the API, the CSV and the page, and who may see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.access import Actor
from accounts.models import User
from quotas.accounting import used
from quotas.models import Budget, Claim, LedgerEntry
from tests.admin_forms import text_of
from tests.shared.clients import browser
from tests.shared.parsed import csv_of
from tests.shared.runs import ran, run_of
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
USAGE = "/api/v1/usage/"


@pytest.fixture
def stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Runs on the 19th of alice (3 h) and bob (2 h) in demo, carol (4 h) in second; alice runs since an hour."""
    cast = stage.cast
    for by, hours in ((cast.alice, 3), (cast.bob, 2), (cast.carol, 4)):
        ran(stage, NOW - 30 * HOUR, hours, by=by)
    run_of(stage, NOW - HOUR)
    return stage


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quotas.accounting.api.timezone.now", lambda: NOW)


def asked(actor: Actor, **params: Any) -> dict[str, Any]:
    answer = browser(actor).get(USAGE, params)
    assert answer.status_code == 200, answer.content
    return answer.json()


def by(actor: Actor, group: str, **params: Any) -> dict[str | None, float]:
    found = asked(actor, group_by=group, **params)
    assert sum(row["allocated_gpu_hours"] for row in found["results"]) == pytest.approx(
        found["total"]["allocated_gpu_hours"]
    )
    return {row[group]: row["allocated_gpu_hours"] for row in found["results"]}


def test_the_answer_has_its_period_and_null_for_unmeasured_use(stage: Stage) -> None:
    hours: dict[str, float | None] = {"allocated_gpu_hours": 6.0, "weighted_gpu_hours": 6.0}
    figures = hours | {"used_gpu_hours": None, "storage_gib_months": 0.0}
    assert asked(stage.cast.alice) == {
        "from": "2026-02-19",
        "to": "2026-03-20",
        "group_by": "tenant",
        "total": figures,
        "results": [{"tenant": "demo", **figures}],
        "next": None,
    }


def test_who_sees_whose_hours(stage: Stage) -> None:
    cast = stage.cast
    assert by(cast.alice, "user") == {"alice": 4, "bob": 2}
    assert by(cast.bob, "user") == {"bob": 2, None: 4}
    assert by(cast.victor, "user") == {None: 6}
    assert by(cast.victor, "tenant") == {"demo": 6}
    assert by(cast.carol, "tenant") == {"second": 4}
    assert by(cast.carol, "tenant", tenant="demo") == {}
    assert by(cast.admin, "user") == {"alice": 4, "carol": 4, "bob": 2}
    assert by(Actor(User.objects.create_user("erin")), "tenant") == {}


def test_filtering_by_a_hidden_person_returns_nothing(stage: Stage) -> None:
    cast = stage.cast
    assert by(cast.alice, "pool", user="bob") == {"a100": 2}
    assert by(cast.bob, "pool", user="bob") == {"a100": 2}
    assert by(cast.bob, "pool", user="alice") == by(cast.bob, "pool", user="nobody") == {}


def test_days_are_of_utc_and_filters_narrow(stage: Stage) -> None:
    cast = stage.cast
    assert by(cast.alice, "day") == {"2026-03-19": 5, "2026-03-20": 1}
    assert by(cast.alice, "day", **{"from": "2026-03-20"}) == {"2026-03-20": 1}
    assert by(cast.alice, "day", to="2026-03-19T23:30:00-02:00") == {"2026-03-19": 5, "2026-03-20": 1}
    assert by(cast.alice, "day", to="2026-03-19T23:30:00Z") == {"2026-03-19": 5}
    assert by(cast.alice, "tenant", pool="elsewhere") == {}


def test_slices_are_fractions_weighted_by_their_pool(stage: Stage) -> None:
    sliced = stage.another_pool("sliced", units_per_gpu=7, weight=Decimal("0.5"))
    ran(stage, NOW - 10 * HOUR, 7, pool=sliced)
    [row] = [row for row in asked(stage.cast.alice, group_by="pool")["results"] if row["pool"] == "sliced"]
    assert (row["allocated_gpu_hours"], row["weighted_gpu_hours"]) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("params", "field", "said"),
    [
        ({"from": "2026-03-21", "to": "2026-03-20"}, "from", "It begins after its end."),
        ({"from": "2024-01-01"}, "from", "It is 810 days long."),
        ({"from": "2026-02-30"}, "from", "There is no such day."),
        ({"to": "soon"}, "to", "There is no such day."),
        ({"to": "99999-01-01"}, "to", "There is no such day."),
        ({"group_by": "colour"}, "group_by", "“colour” is not among these."),
    ],
)
def test_a_wrong_parameter_is_refused_by_its_field(
    stage: Stage, params: dict[str, str], field: str, said: str
) -> None:
    for form in ({}, {"format": "csv"}):
        answer = browser(stage.cast.alice).get(USAGE, params | form)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["fields"] == {field: [said]} and error["hint"]
    page = browser(stage.cast.alice).get("/usage/", params)
    assert page.status_code == 400 and said in text_of(page)


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_first_and_the_last_of_all_days_are_days(stage: Stage, day: str) -> None:
    assert by(stage.cast.alice, "day", **{"from": day, "to": day}) == {}
    assert by(stage.cast.alice, "day", to="0001-01-02") == {}
    assert browser(stage.cast.alice).get("/usage/", {"from": day, "to": day}).status_code == 200


def test_as_csv_no_name_is_a_formula(stage: Stage) -> None:
    stage.cast.bob.user.username = "=cmd()"
    stage.cast.bob.user.save()
    answer = browser(stage.cast.alice).get(USAGE, {"group_by": "user", "format": "csv"})
    assert answer["Content-Type"].startswith("text/csv") and answer.streaming

    assert csv_of(answer) == [
        "user,allocated_gpu_hours,weighted_gpu_hours,used_gpu_hours,storage_gib_months",
        "alice,4.0000,4.0000,,0.0000",
        "'=cmd(),2.0000,2.0000,,0.0000",
    ]


def test_reading_writes_nothing(stage: Stage) -> None:
    before = LedgerEntry.objects.count()
    asked(stage.cast.alice)
    assert LedgerEntry.objects.count() == before


def test_the_number_of_queries_does_not_grow(stage: Stage) -> None:
    client = browser(stage.cast.alice)
    counts: list[dict[str, int]] = []
    for number in range(3):
        Budget.objects.create(
            tenant=stage.cast.demo, user=User.objects.create_user(f"p{number}"), gpu_hours=number
        )
        for _time in range(3):
            person = Actor(User.objects.create_user(f"q{number}-{_time}"))
            ran(stage, NOW - 10 * HOUR, 1, by=person)
            run_of(stage, NOW - HOUR, by=person)
        counts.append({})
        for address in (USAGE, "/usage/", "/api/v1/budgets/"):
            with CaptureQueriesContext(connection) as captured:
                assert client.get(address, {"group_by": "user"}).status_code == 200
            counts[-1][address] = len(captured)
    assert counts[1] == counts[2]


# --- Budgets


def test_budgets_have_hours_spent_and_limit(stage: Stage) -> None:
    Budget.objects.create(tenant=stage.cast.demo, gpu_hours=5, grace_minutes=30)
    Budget.objects.create(tenant=stage.cast.demo, user=stage.cast.bob.user, gpu_hours=Decimal("2.5"))
    [whole, own] = browser(stage.cast.bob).get("/api/v1/budgets/").json()["results"]
    assert whole == {
        "tenant": "demo",
        "user": None,
        "month": "2026-03-01",
        "gpu_hours": 5.0,
        "added_gpu_hours": 0.0,
        "limit_gpu_hours": 5.0,
        "spent_gpu_hours": 6.0,
        "is_spent": True,
        "stops_at": None,
    }
    assert (own["user"], own["spent_gpu_hours"], own["is_spent"]) == ("bob", 2.0, False)
    [seen] = browser(stage.cast.victor).get("/api/v1/budgets/").json()["results"]
    assert seen["user"] is None
    assert browser(stage.cast.carol).get("/api/v1/budgets/").json()["results"] == []
    narrowed = browser(stage.cast.alice).get("/api/v1/budgets/", {"user": "bob"}).json()["results"]
    assert [row["user"] for row in narrowed] == ["bob"]


# --- The page


def test_the_page_has_the_chart_its_table_and_budgets(stage: Stage) -> None:
    Budget.objects.create(tenant=stage.cast.demo, gpu_hours=100)
    page = browser(stage.cast.alice).get("/usage/", {"group_by": "user"})
    text = text_of(page)
    assert "6 of 100 GPU-hours spent" in text
    assert "The chart as a table" in text and "19 Mar 2026" in text
    body = page.content.decode()
    assert body.count('<rect class="bar"') == 30
    assert "style=" not in body and "<script>" not in body
    assert "group_by=user" in body and "format=csv" in body


def test_the_page_and_the_table_show_busy_hours_where_measured(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Claim.objects.get(user=stage.cast.bob.user)
    hours = {(run.pk, (NOW - 30 * HOUR).date()): 5400.0}
    monkeypatch.setattr(used, "_sources", [lambda _held: hours])
    text = text_of(browser(stage.cast.alice).get("/usage/", {"group_by": "user"}))
    assert "Busy" in text and text.count("not measured") == 1
    assert text.count("1.50") == 2  # bob's row, and the total
    busy = {row["user"]: row["used_gpu_hours"] for row in asked(stage.cast.alice, group_by="user")["results"]}
    assert busy == {"alice": None, "bob": 1.5}
    assert asked(stage.cast.alice)["total"]["used_gpu_hours"] == 1.5
    table = browser(stage.cast.alice).get(USAGE, {"group_by": "user", "format": "csv"})
    assert "bob,2.0000,2.0000,1.5000,0.0000" in csv_of(table)


def test_the_page_without_use_is_empty(stage: Stage) -> None:
    page = browser(stage.cast.victor).get("/usage/", {"from": "2026-01-01", "to": "2026-01-02"})
    assert "No GPUs were used in this period" in text_of(page)
    assert timezone.now() == NOW


def test_a_tenants_page_and_the_launch_form_show_its_budgets(stage: Stage) -> None:
    Budget.objects.create(tenant=stage.cast.demo, gpu_hours=5)
    Budget.objects.create(tenant=stage.cast.demo, user=stage.cast.bob.user, gpu_hours=10)
    page = text_of(browser(stage.cast.bob).get("/tenants/demo/"))
    assert "6 of 5 GPU-hours spent" in page and "Yours in Demo" in page
    assert "Nothing with GPUs starts before 1 Apr 2026" in page
    launch = text_of(browser(stage.cast.bob).get("/launch/?flavor=a100-1"))
    assert "0 of 5 GPU-hours of this month" in launch
    assert "8 of 10 GPU-hours of this month" in launch and "(your own)" in launch
    assert 'data-code="budget_spent"' in launch

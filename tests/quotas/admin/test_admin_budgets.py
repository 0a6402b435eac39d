"""Budgets in the admin: hours spent, adding hours, lowering after a question; and the read-only ledger."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuditEntry, User
from quotas import enqueue
from quotas.models import Budget, BudgetMonth
from tests.admin_forms import hidden, text_of
from tests.shared.clients import browser
from tests.shared.runs import ran, run_of
from tests.shared.stage import Stage

pytestmark = pytest.mark.django_db

BUDGETS = "/admin/quotas/budget/"


@pytest.fixture
def admin(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(enqueue, "look_at_spending", lambda: None)
    return browser(stage.cast.admin)


@pytest.fixture
def budget(stage: Stage) -> Budget:
    """Budget of ten hours, of which six are used this month."""
    begin = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    ran(stage, begin, 6)
    return Budget.objects.create(tenant=stage.cast.demo, gpu_hours=10)


def form(budget: Budget, gpu_hours: Any, added: Any = "") -> dict[str, Any]:
    months = {"months-TOTAL_FORMS": 0, "months-INITIAL_FORMS": 0}
    asked = {"gpu_hours": gpu_hours, "grace_minutes": budget.grace_minutes, "add_gpu_hours": added}
    return {"tenant": str(budget.tenant_id), "user": "", **asked, **months}


def change(admin: Client, budget: Budget, gpu_hours: Any, added: Any = "") -> Any:
    return admin.post(f"{BUDGETS}{budget.pk}/change/", form(budget, gpu_hours, added))


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("at").values_list("action", flat=True))


def test_the_list_says_what_is_spent_by_as_many_queries_for_any_number(admin: Client, budget: Budget) -> None:
    assert "6 of 10 GPU-hours" in text_of(admin.get(BUDGETS))
    counts = []
    for number in range(3):
        user = User.objects.create_user(f"p{number}")
        Budget.objects.create(tenant=budget.tenant, user=user, gpu_hours=1)
        with CaptureQueriesContext(connection) as captured:
            admin.get(BUDGETS)
        counts.append(len(captured))
    assert counts[1] == counts[2]


def test_hours_are_added_to_this_month_and_are_a_deed_of_their_own(admin: Client, budget: Budget) -> None:
    assert change(admin, budget, 10, "2.5").status_code == 302
    assert change(admin, budget, 10, "1").status_code == 302
    assert BudgetMonth.objects.get(budget=budget).added_gpu_hours == Decimal("3.5")
    assert actions() == ["budget.add_hours"] * 2
    assert Budget.objects.get().gpu_hours == 10


def test_less_than_is_spent_is_said_first(admin: Client, budget: Budget, stage: Stage) -> None:
    run_of(stage, timezone.now() - timedelta(minutes=1), by=stage.cast.bob)
    page = change(admin, budget, 5)
    assert "that many are already used" in text_of(page)
    assert "Workspaces that stop after the grace: of bob." in text_of(page)
    assert Budget.objects.get().gpu_hours == 10
    assert admin.post(page.request["PATH_INFO"], hidden(page)).status_code == 302
    assert Budget.objects.get().gpu_hours == 5
    assert actions() == ["budget.change"]


@pytest.mark.parametrize("gpu_hours", [7, 100])
def test_what_is_not_less_than_is_spent_asks_nothing(admin: Client, budget: Budget, gpu_hours: int) -> None:
    assert change(admin, budget, gpu_hours).status_code == 302
    assert Budget.objects.get().gpu_hours == gpu_hours


def test_a_new_budget_is_made_and_recorded(admin: Client, budget: Budget, stage: Stage) -> None:
    fields = form(budget, 5) | {"user": str(stage.cast.bob.user.pk)}
    assert admin.post(f"{BUDGETS}add/", fields).status_code == 302
    assert Budget.objects.filter(user=stage.cast.bob.user).exists()
    assert actions() == ["budget.create"]


def test_the_ledger_is_to_look_at(admin: Client, budget: Budget) -> None:
    page = admin.get("/admin/quotas/ledgerentry/")
    assert "6.00" in text_of(page)
    assert admin.get("/admin/quotas/ledgerentry/add/").status_code == 403

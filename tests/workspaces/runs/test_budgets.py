"""A spent budget, as the owner is notified: when the run stops, that it stops, or that it goes on after all."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.notices import words
from accounts.notices.models import Notice
from quotas import enqueue
from quotas.accounting import budgets, spending
from quotas.models import Budget, BudgetMonth, Claim
from tests.workspaces.play import Play
from workspaces.api.representation import workspace_json
from workspaces.models import Event, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue, "look_at_spending", lambda: None)


def spent(play: Play, workspace: Workspace) -> Budget:
    """Let it have run for two hours, with a budget of one."""
    Claim.objects.filter(holder_id=workspace.pk).update(admitted_at=timezone.now() - timedelta(hours=2))
    budget = Budget.objects.create(tenant=play.cast.demo, gpu_hours=Decimal(1), grace_minutes=30)
    spending.keep_to_budgets()
    return budget


def lines(workspace: Workspace) -> list[str]:
    return list(Event.objects.filter(workspace=workspace).order_by("number").values_list("code", flat=True))


def test_the_owner_is_notified_then_the_run_stops(play: Play) -> None:
    workspace = play.begin_ready()
    spent(play, workspace)
    assert lines(workspace)[-1] == "ends_by_budget"
    [notice] = Notice.objects.filter(user=workspace.owner, kind="stops_soon")
    [said] = words.of(workspace.owner, [notice]).values()
    assert "its GPU-hours are used up" in said.title and not said.is_past
    assert workspace_json(workspace, play.cast.alice)["reclaim"]["code"] == "ends_by_budget"
    Claim.objects.filter(holder_id=workspace.pk).update(budget_ends_at=timezone.now() - timedelta(minutes=1))
    BudgetMonth.objects.update(spent_at=timezone.now() - timedelta(minutes=31))
    spending.keep_to_budgets()
    workspace.refresh_from_db()
    assert (workspace.desired, workspace.ending) == ("stopped", "stop")
    assert "stopped_by_budget_spent" in lines(workspace)


def test_hours_that_an_admin_adds_let_the_run_continue(play: Play) -> None:
    workspace = play.begin_ready()
    budget = spent(play, workspace)
    budgets.add_hours(play.cast.admin, budget, Decimal(10))
    spending.keep_to_budgets()
    assert lines(workspace)[-1] == "goes_on_by_budget"
    first = Notice.objects.filter(user=workspace.owner, kind="stops_soon").order_by("at")[0]
    [said] = words.of(workspace.owner, [first]).values()
    assert said.is_past
    workspace.refresh_from_db()
    assert (workspace.desired, workspace.ending) == ("running", "")

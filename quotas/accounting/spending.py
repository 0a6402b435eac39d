"""Enforcement of budgets while things run: notices at percentages, and the end of runs once all is spent.

A periodic check compares the hours spent with the notices sent, and records each step with its consequence in one
transaction: if it is killed, the next check continues from there. Once a budget is spent, its runs continue for the
grace. Each run gets that end (`Claim.budget_ends_at`) and then stops; files are kept. If the budget has hours again,
from an admin or a new month, the end is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from clusters.watch.ticks import is_due
from quotas import admission, enqueue
from quotas.accounting import budgets, ledger
from quotas.accounting import notices as budget_notices
from quotas.accounting.budgets import Standing
from quotas.models import Budget, BudgetMonth, Claim
from quotas.signals import claim_ends_by_budget, claim_to_stop

State = Claim.State

CODE = "budget_spent"
EVERY_SECONDS = 60

Ends = dict[tuple[UUID, UUID | None], datetime]


def on_tick(**_: Any) -> None:
    """Enqueue a check once a minute; a second one now and then does no harm."""
    if is_due(EVERY_SECONDS):
        enqueue.look_at_spending()


def on_worker_began(**_: Any) -> None:
    """Enqueue a check: if the previous worker died with one, runs must not continue for another minute."""
    enqueue.look_at_spending()


def look() -> None:
    """Bring the ledger up to date, then enforce budgets."""
    ledger.settle_due()
    keep_to_budgets()


def keep_to_budgets() -> None:
    now = timezone.now()
    rows = Budget.objects.select_related("tenant", "user").order_by("pk")
    standings = [_note(standing, now) for standing in budgets.standings(rows, now)]
    ends = ends_of(standings)
    for claim in _concerned(ends):
        until = end_of(claim, ends)
        if until != claim.budget_ends_at:
            _tell(claim, until)
        if until is not None and until <= now:
            _stop(claim, until)


def ends_of(standings: Iterable[Standing]) -> Ends:
    """Return when the runs on each spent budget end: by tenant, and by person in it."""
    return {
        (standing.budget.tenant_id, standing.budget.user_id): standing.ends_at
        for standing in standings
        if standing.ends_at is not None
    }


def end_of(claim: Claim, ends: Ends) -> datetime | None:
    """Return a run's end by its tenant's or its person's budget, the earlier one. Runs without cost have none."""
    if not claim.units or not claim.pool.weight:
        return None
    keys = ((claim.tenant_id, None), (claim.tenant_id, claim.user_id))
    return min((ends[key] for key in keys if key in ends), default=None)


def _note(standing: Standing, now: datetime) -> Standing:
    """Record and notify what a budget reached since the last check. Hours may also have been added."""
    known = standing.row
    if standing.reached == known.told_percent and standing.is_spent == (known.spent_at is not None):
        return standing
    with transaction.atomic():
        row = budgets.month_row(standing.budget, known.month)
        standing = replace(standing, row=row)
        reached = standing.reached
        if not standing.is_spent:
            row.spent_at = None
        elif row.spent_at is None:
            row.spent_at = now
        is_news = reached > row.told_percent
        row.told_percent = reached
        row.save(update_fields=["told_percent", "spent_at"])
        if is_news:
            budget_notices.reached(standing, reached)
        return standing


def _concerned(ends: Ends) -> Iterable[Claim]:
    """Runs that must end by a budget, or had to before."""
    tenants = {tenant for tenant, _user in ends}
    running = Claim.objects.filter(state=State.ADMITTED).select_related("pool")
    return running.filter(Q(tenant__in=tenants) | Q(budget_ends_at__isnull=False)).order_by("pk")


def _tell(claim: Claim, until: datetime | None) -> None:
    """Set a run's end and signal it: once per end, and once when the end is withdrawn."""
    with transaction.atomic():
        admission.lock(claim.pool.cluster_id)
        running = Claim.objects.filter(pk=claim.pk, state=State.ADMITTED, budget_ends_at=claim.budget_ends_at)
        if running.update(budget_ends_at=until):
            claim.budget_ends_at = until
            claim_ends_by_budget.send(sender=Claim, claim=claim)


def _stop(claim: Claim, until: datetime) -> None:
    """Signal that a run must stop, at each check until its units are back."""
    with transaction.atomic():
        admission.lock(claim.pool.cluster_id)
        running = Claim.objects.filter(pk=claim.pk, state=State.ADMITTED, budget_ends_at=until)
        if running.exists() and _still_spent(claim):
            claim_to_stop.send(sender=Claim, claim=claim, code=CODE)


def _still_spent(claim: Claim) -> bool:
    """Check again: an admin may have added hours since this check began."""
    its = Q(budget__user=None) | Q(budget__user=claim.user_id)
    months = BudgetMonth.objects.filter(its, budget__tenant=claim.tenant_id, spent_at__isnull=False)
    return months.filter(month=budgets.month_of(timezone.now())).exists()

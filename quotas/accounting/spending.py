"""Budgets while things run: who is told at which percentage, and what becomes of runs once all is spent.

The periodic pass compares what is spent by now with what was told, and writes down each step with what follows from it
in one transaction: killed anywhere, the next pass goes on from there. Once a budget is spent its runs go on for the
grace; each of them is told until when (`Claim.budget_ends_at`), and then to stop, files kept. Where there is room in
the budget again, by an admin or by a new month, they are told that they go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from clusters.ticks import is_due
from quotas import admission, tasks
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
    """Once a minute; twice now and then does no harm."""
    if is_due(EVERY_SECONDS):
        tasks.enqueue_spending()


def on_worker_began(**_: Any) -> None:
    """The worker before it may have died with a look in hand: nobody is to go on for a minute more by that."""
    tasks.enqueue_spending()


def look() -> None:
    """Have the ledger know what ran, then hold budgets to it."""
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
    """When what runs on each spent budget ends: by tenant, and by person in it."""
    found: Ends = {}
    for standing in standings:
        if standing.ends_at is not None:
            found[standing.budget.tenant_id, standing.budget.user_id] = standing.ends_at
    return found


def end_of(claim: Claim, ends: Ends) -> datetime | None:
    """Of a run: by its tenant's budget or its person's, whichever comes first. What costs nothing goes on."""
    if not claim.units or not claim.pool.weight:
        return None
    keys = ((claim.tenant_id, None), (claim.tenant_id, claim.user_id))
    return min((ends[key] for key in keys if key in ends), default=None)


def _note(standing: Standing, now: datetime) -> Standing:
    """Write down, and tell, what a budget reached since the last look; it may also have been given more."""
    if standing.reached == standing.told_percent and standing.is_spent == (standing.spent_at is not None):
        return standing
    with transaction.atomic():
        row = budgets.month_row(standing.budget, standing.month)
        standing = budgets.with_row(row, standing)
        reached = standing.reached
        if not standing.is_spent:
            row.spent_at = None
        elif row.spent_at is None:
            row.spent_at = now
        is_news = reached > row.told_percent
        row.told_percent = reached
        row.save(update_fields=["told_percent", "spent_at"])
        standing = budgets.with_row(row, standing)
        if is_news:
            budget_notices.reached(standing, reached)
        return standing


def _concerned(ends: Ends) -> Iterable[Claim]:
    """Runs that are to end, or were."""
    tenants = {tenant for tenant, _user in ends}
    running = Claim.objects.filter(state=State.ADMITTED).select_related("pool")
    return running.filter(Q(tenant__in=tenants) | Q(budget_ends_at__isnull=False)).order_by("pk")


def _tell(claim: Claim, until: datetime | None) -> None:
    """Once for each end, and once that there is none any more."""
    with transaction.atomic():
        admission.lock(claim.pool.cluster_id)
        running = Claim.objects.filter(pk=claim.pk, state=State.ADMITTED, budget_ends_at=claim.budget_ends_at)
        if running.update(budget_ends_at=until):
            claim.budget_ends_at = until
            claim_ends_by_budget.send(sender=Claim, claim=claim)


def _stop(claim: Claim, until: datetime) -> None:
    """Told again at each look until its units are back."""
    with transaction.atomic():
        admission.lock(claim.pool.cluster_id)
        running = Claim.objects.filter(pk=claim.pk, state=State.ADMITTED, budget_ends_at=until)
        if running.exists() and _still_spent(claim):
            claim_to_stop.send(sender=Claim, claim=claim, code=CODE)


def _still_spent(claim: Claim) -> bool:
    """An admin may have added hours since this pass began."""
    its = Q(budget__user=None) | Q(budget__user=claim.user_id)
    months = BudgetMonth.objects.filter(its, budget__tenant=claim.tenant_id, spent_at__isnull=False)
    return months.filter(month=budgets.month_of(timezone.now())).exists()

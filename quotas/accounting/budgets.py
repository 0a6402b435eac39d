"""Monthly budgets of GPU-hours: their size, what is spent, and what that means for new runs.

A month is a calendar month in UTC. A tenant may have a budget, and each person in it another: both apply.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor, owned_tenants, visible_tenants
from accounts.errors import Invalid
from accounts.locks import locked
from accounts.models import Scope, Tenant
from accounts.trail import audit
from quotas import enqueue, passes
from quotas.accounting.hours import hours
from quotas.models import Budget, BudgetMonth
from quotas.scheduling import Reason

# Percentages of a budget at which people are notified, each once a month.
NOTIFY_AT = (80, 95, 100)
DAY = timedelta(days=1)
MOST_HOURS = Decimal(10_000_000)  # that can be added in one month


@dataclass(frozen=True)
class Standing:
    """State of a budget in one month."""

    budget: Budget
    row: BudgetMonth
    spent: Fraction

    @property
    def limit(self) -> Fraction:
        return Fraction(self.budget.gpu_hours) + Fraction(self.row.added_gpu_hours)

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.limit

    @property
    def reached(self) -> int:
        """Highest percentage of NOTIFY_AT that is reached; 0: none yet."""
        return max((percent for percent in NOTIFY_AT if 100 * self.spent >= percent * self.limit), default=0)

    @property
    def ends_at(self) -> datetime | None:
        """Time at which the budget's runs stop, unless hours are added; None while it is not spent."""
        if not self.is_spent or self.row.spent_at is None:
            return None
        return self.row.spent_at + timedelta(minutes=self.budget.grace_minutes)

    @property
    def whose(self) -> str:
        return self.budget.user.get_username() if self.budget.user else self.budget.tenant.name


def month_of(moment: datetime) -> date:
    return moment.astimezone(UTC).date().replace(day=1)


def next_month(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def standings(budgets: Iterable[Budget], now: datetime) -> list[Standing]:
    """Return the state of each budget in the month of `now`. Three queries for any number, and none for none."""
    if not (budgets := list(budgets)):
        return []
    month = month_of(now)
    months = {row.budget_id: row for row in BudgetMonth.objects.filter(budget__in=budgets, month=month)}
    in_tenants, last_day = Q(tenant__in={budget.tenant_id for budget in budgets}), next_month(month) - DAY
    spent: defaultdict[tuple[UUID, UUID | None], Fraction] = defaultdict(Fraction)
    for (tenant, user), amount in hours(in_tenants, month, last_day, ("tenant_id", "user_id"), now).items():
        spent[tenant, user] += amount.weighted
        spent[tenant, None] += amount.weighted
    return [
        Standing(
            budget,
            months.get(budget.pk) or BudgetMonth(budget=budget, month=month),
            spent[budget.tenant_id, budget.user_id],
        )
        for budget in budgets
    ]


# --- Effect on new runs


def blocked_by_budget(tenants: set[UUID]) -> tuple[dict[UUID, Reason], dict[tuple[UUID, UUID], Reason]]:
    """Return why tenants, and people in them, may start nothing with GPUs. Four queries; one without budgets."""
    whole: dict[UUID, Reason] = {}
    people: dict[tuple[UUID, UUID], Reason] = {}
    rows = Budget.objects.filter(tenant__in=tenants).select_related("tenant", "user")
    for standing in standings(rows, timezone.now()):
        if not standing.is_spent:
            continue
        budget = standing.budget
        if budget.user_id is None:
            whole[budget.tenant_id] = reason(standing)
        else:
            people[budget.tenant_id, budget.user_id] = reason(standing)
    return whole, people


def reason(standing: Standing) -> Reason:
    """Return the reason without the hours spent: they change every minute and would notify the queue in vain."""
    data = {
        "whose": standing.whose,
        "limit_gpu_hours": rounded(standing.limit),
        "from": next_month(standing.row.month).isoformat(),
    }
    return Reason("budget_spent", data)


def rounded(amount: Fraction) -> float:
    """Round exact hours for people and programs, to less than a second of a GPU."""
    return round(float(amount), 4)


# --- Visibility


def visible(actor: Actor) -> QuerySet[Budget]:
    """Return the budgets of the actor's tenants, the actor's own, and all people's in tenants that the actor owns."""
    mine = Q(user__isnull=True) | Q(user=actor.user) | Q(tenant__in=owned_tenants(actor))
    return Budget.objects.filter(mine, tenant__in=visible_tenants(actor)).select_related("tenant", "user")


def own_standings(actor: Actor, tenants: Iterable[Tenant]) -> dict[UUID, list[Standing]]:
    """Return by tenant its own budget, then the actor's in it."""
    of_mine = Q(user__isnull=True) | Q(user=actor.user)
    rows = visible(actor).filter(of_mine, tenant__in=list(tenants)).order_by("tenant", "user_id")
    found: dict[UUID, list[Standing]] = {}
    for standing in sorted(standings(rows, timezone.now()), key=lambda one: one.budget.user_id is not None):
        found.setdefault(standing.budget.tenant_id, []).append(standing)
    return found


def fullest_first(standing: Standing) -> tuple[bool, Fraction]:
    return not standing.is_spent, -standing.spent / (standing.limit or 1)


def meter_values(standing: Standing) -> dict[str, Any]:
    """Return the values for a budget's meter on a page."""
    return {
        "tenant": standing.budget.tenant,
        "user": standing.budget.user,
        "spent": rounded(standing.spent),
        "limit": rounded(standing.limit),
        "left": rounded(max(standing.limit - standing.spent, Fraction(0))),
        "is_spent": standing.is_spent,
        "ends_at": standing.ends_at,
        "next_month": next_month(standing.row.month),
    }


# --- Adding hours


@transaction.atomic
def add_hours(actor: Actor, budget: Budget, gpu_hours: Decimal) -> BudgetMonth:
    """Add hours to this month's budget, as an admin: waiting claims may start, and runs due to stop continue."""
    actor.require(Scope.ADMIN)
    [before] = standings([budget], timezone.now())
    row = month_row(budget, before.row.month)
    most = MOST_HOURS - row.added_gpu_hours
    if not 0 < gpu_hours <= most:
        text = _("Add more than 0 and at most %(most)s GPU-hours.") % {"most": most}
        hint = _("See “fields” for what to change.")
        raise Invalid("not_so_many_hours", text, hint, fields={"add_gpu_hours": [text]})
    row.added_gpu_hours += gpu_hours
    if not replace(before, row=row).is_spent:
        row.spent_at = None  # cancels the stop of its runs
    row.save(update_fields=["added_gpu_hours", "spent_at"])
    data = {
        "name": str(budget),
        "month": row.month.isoformat(),
        "gpu_hours": str(gpu_hours),
        "added_in_all": str(row.added_gpu_hours),
    }
    audit.record(actor, "budget.add_hours", target=budget, tenant=budget.tenant, data=data)
    changed()
    return row


def month_row(budget: Budget, month: date) -> BudgetMonth:
    """Return the row of a budget's month, created if missing, and locked."""
    BudgetMonth.objects.bulk_create([BudgetMonth(budget=budget, month=month)], ignore_conflicts=True)
    return locked(BudgetMonth.objects.filter(budget=budget, month=month)).get()


def changed() -> None:
    """Recheck waiting claims and runs due to stop after a budget changed. Call inside the change's transaction."""
    transaction.on_commit(enqueue.look_at_spending, robust=True)
    passes.want_everywhere()

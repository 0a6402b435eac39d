"""Admin pages of budgets, with the hours spent this month, and of the ledger that counts them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.template.defaultfilters import floatformat
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Actor
from accounts.admin.meters import meter
from accounts.admin.recorded import ReadOnlyInline, ReadOnlyPage
from accounts.rest.actors import actor_of
from quotas.accounting import budgets
from quotas.accounting.hours import GPUHours
from quotas.admin.shared import ConfirmsLowering
from quotas.models import Budget, BudgetMonth, LedgerEntry

ADDED = "add_gpu_hours"


class BudgetForm(forms.ModelForm[Budget]):
    add_gpu_hours = forms.DecimalField(
        label=gettext_lazy("Add for this month"),
        required=False,
        min_value=Decimal("0.01"),
        max_value=budgets.MOST_HOURS,
        decimal_places=2,
        help_text=gettext_lazy(
            "GPU-hours. Workspaces that wait for them start, and those about to stop continue."
        ),
    )


class MonthsInline(ReadOnlyInline[BudgetMonth]):
    model = BudgetMonth
    verbose_name_plural = gettext_lazy("usage by month")
    fields = ("month", "added_gpu_hours", "told_percent", "spent_at")
    show_change_link = False


@admin.register(Budget)
class BudgetPage(ConfirmsLowering[Budget]):
    purpose = gettext_lazy(
        "GPU-hours per calendar month (UTC) of a tenant, or of one person in it; an hour counts by its "
        "pool's weight. People are notified at 80, 95 and 100 percent. At 100 percent nothing new starts, "
        "and running workspaces stop after the grace."
    )
    lowering_means = gettext_lazy(
        "More than that is already used: nothing with GPUs starts until next month, and running workspaces "
        "stop after the grace. Files are kept."
    )
    form = BudgetForm
    list_display = ("name", "spent", "gpu_hours", "grace_minutes")
    list_editable = ("gpu_hours", "grace_minutes")
    list_filter = ("tenant",)
    list_select_related = ("tenant", "user")
    search_fields = ("tenant__slug", "tenant__name", "user__username")
    autocomplete_fields = ("tenant", "user")
    inlines = (MonthsInline,)

    def get_fieldsets(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        added = () if obj is None else (ADDED,)
        return ((None, {"fields": ("tenant", "user", "gpu_hours", "grace_minutes", *added)}),)

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        """Fix tenant and person once saved: hours spent and notices sent belong to them."""
        return ("tenant", "user") if obj else ()

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Add the hours spent to the budgets of this page, with a few queries for all."""
        found = super().get_changelist_instance(request)
        standings = {one.budget.pk: one for one in budgets.standings(found.result_list, timezone.now())}
        for budget in found.result_list:
            budget.standing = standings[budget.pk]
        return found

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        """Record added hours as an action of their own, apart from changes for all months."""
        added = form.cleaned_data.pop(ADDED, None)
        if ADDED in form.changed_data:
            form.changed_data.remove(ADDED)
        if form.changed_data or not change:
            super().save_model(request, obj, form, change)
        if change and added:
            budgets.add_hours(actor_of(request), obj, added)

    def after_change(self, actor: Actor, obj: Model) -> None:
        budgets.changed()

    @admin.display(description=gettext_lazy("budget"), ordering="tenant__slug")
    def name(self, budget: Budget) -> str:
        return str(budget)

    @admin.display(description=gettext_lazy("used this month"))
    def spent(self, budget: Any) -> SafeString:
        spent, limit = (budgets.rounded(hours) for hours in (budget.standing.spent, budget.standing.limit))
        words = {"spent": floatformat(spent, "-1"), "limit": floatformat(limit, "-2")}
        return meter(spent, limit, _("%(spent)s of %(limit)s GPU-hours") % words)


@admin.register(LedgerEntry)
class LedgerPage(ReadOnlyPage[LedgerEntry]):
    purpose = gettext_lazy(
        "How long each run held its GPUs, by day (UTC). Berth writes it; for running workspaces it is a "
        "few minutes behind."
    )
    list_display = ("day", "tenant", "user", "pool", "units", "gpu_hours", "weight")
    list_filter = ("pool", "tenant")
    list_select_related = ("tenant", "user", "pool")
    date_hierarchy = "day"
    search_fields = ("tenant__slug", "user__username")

    @admin.display(description=gettext_lazy("GPU-hours"))
    def gpu_hours(self, entry: LedgerEntry) -> str:
        amount = GPUHours.of(entry.microseconds * entry.units, entry.units_per_gpu, entry.weight)
        return str(floatformat(budgets.rounded(amount.allocated), "2"))

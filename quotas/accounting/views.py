"""The usage page: a chart by day, the same hours by the chosen group, and the state of budgets."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.access import Actor, owned_tenants, visible_tenants
from accounts.errors import Refusal
from accounts.rest.actors import actor_of
from quotas.accounting import budgets
from quotas.accounting import report as usage_report
from quotas.accounting.budgets import rounded
from quotas.accounting.report import Asked, Report
from quotas.models import Pool

GROUP_NAMES = {"tenant": _("Tenant"), "user": _("Person"), "pool": _("Pool"), "day": _("Day")}
MOST_BUDGETS = 50


@never_cache
@login_required
@require_GET
def usage(request: HttpRequest) -> HttpResponse:
    actor, now = actor_of(request), timezone.now()
    refused = None
    try:
        asked = usage_report.parse(request.GET, now)
    except Refusal as refusal:
        refused, asked = refusal, usage_report.parse({}, now)
    report = usage_report.read(actor, asked, now)
    by_day = report if asked.group_by == "day" else usage_report.held_by_day(actor, asked, now)
    context = {
        "section": "usage",
        "refused": refused,
        "asked": asked,
        "groups": GROUP_NAMES.items(),
        "group_name": GROUP_NAMES[asked.group_by],
        "bars": bars(by_day),
        "most_of_a_day": rounded(by_day.most),
        "lines": lines(report),
        "total": usage_report.figures(report.total),
        "has_storage": asked.has_storage,
        "budgets": standings(actor, now),
        "tenants": visible_tenants(actor).order_by("name"),
        "pools": Pool.objects.exclude(resource_name="").order_by("name"),
        "may_see_people": owned_tenants(actor).exists(),
        "export": f"{reverse('api-v1:usage')}?{urlencode(query(asked) | {'format': 'csv'})}",
    }
    return render(request, "quotas/usage.html", context, status=refused.status if refused else 200)


def bars(by_day: Report) -> list[dict[str, Any]]:
    """Return a bar for every day, also for days without runs: its hours, and its place in the units of the drawing."""
    hours = {row.key: row.amount.gpus.allocated for row in by_day.rows}
    most = by_day.most or Fraction(1)
    found = []
    for number, day in enumerate(by_day.asked.days):
        amount = hours.get(day.isoformat(), Fraction(0))
        height = round(float(100 * amount / most), 2)
        bar = {"day": day, "hours": rounded(amount), "left": number + 0.1, "top": round(100 - height, 2)}
        found.append(bar | {"height": height})
    return found


def lines(report: Report) -> list[dict[str, Any]]:
    """Return the rows of the table. `percent` is relative to the largest row."""
    most = report.most or Fraction(1)
    return [
        {
            "key": row.key,
            "name": row.name,
            "percent": f"{float(100 * row.amount.gpus.allocated / most):.1f}%",
            **usage_report.figures(row.amount),
        }
        for row in report.rows
    ]


def query(asked: Asked) -> dict[str, str]:
    """Return the URL parameters of this report."""
    parameters = {
        "from": asked.first.isoformat(),
        "to": asked.last.isoformat(),
        "group_by": asked.group_by,
        "tenant": asked.tenant,
        "user": asked.user,
        "pool": asked.pool,
    }
    return {name: value for name, value in parameters.items() if value}


def standings(actor: Actor, now: datetime) -> list[dict[str, Any]]:
    """Return the visible budgets, the fullest first."""
    found = sorted(budgets.standings(budgets.visible(actor), now), key=budgets.fullest_first)
    return [budgets.meter_values(one) for one in found[:MOST_BUDGETS]]

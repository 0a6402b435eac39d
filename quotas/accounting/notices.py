"""Notices of how much of a budget is spent: to its person, or to its tenant's owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Role, Tenant, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.notifying import notify
from accounts.notices.words import Words
from quotas.accounting import budgets
from quotas.accounting.budgets import Standing
from quotas.notices import words_of_tenants

SUBJECT = "budget"


def reached(standing: Standing, percent: int) -> None:
    """Notify once a month per percentage, and again if the limit changed. Call in the transaction that records it."""
    budget = standing.budget
    owners = User.objects.filter(
        memberships__tenant=budget.tenant_id, memberships__role=Role.OWNER, is_active=True
    )
    limit = budgets.rounded(standing.limit)
    notify(
        Kind.BUDGET,
        [budget.user] if budget.user else list(owners),
        subject=SUBJECT,
        subject_id=budget.tenant_id,
        key=f"{SUBJECT} {budget.pk} {standing.row.month:%Y-%m} {percent} {limit}",
        data={
            "percent": percent,
            "of_person": budget.user_id is not None,
            "month": standing.row.month.isoformat(),
            "spent": budgets.rounded(standing.spent),
            "limit": limit,
            "grace_minutes": budget.grace_minutes,
        },
    )


# --- Words


def describe(user: User, notices: Sequence[Notice]) -> Mapping[UUID, Words]:
    return words_of_tenants(user, notices, _words)


def _words(data: Mapping[str, Any], tenant: Tenant) -> Words:
    month = date.fromisoformat(data["month"])
    facts = {
        "tenant": tenant.name,
        "percent": data["percent"],
        "spent": floatformat(data["spent"], "-1"),
        "limit": floatformat(data["limit"], "-2"),
        "date": date_format(budgets.next_month(month), "DATE_FORMAT"),
    }
    return Words(
        title=_title(data) % facts,
        text=_("%(spent)s of %(limit)s GPU-hours of this month are used.") % facts,
        hint=_hint(data, facts),
        path=reverse("usage"),
        action=_("View usage"),
        is_past=month != budgets.month_of(timezone.now()),
    )


def _title(data: Mapping[str, Any]) -> str:
    if data["percent"] >= 100:
        if data["of_person"]:
            return _("Your GPU-hours in %(tenant)s are spent")
        return _("The GPU-hours of %(tenant)s are spent")
    if data["of_person"]:
        return _("%(percent)s%% of your GPU-hours in %(tenant)s are spent")
    return _("%(percent)s%% of the GPU-hours of %(tenant)s are spent")


def _hint(data: Mapping[str, Any], facts: dict[str, Any]) -> str:
    if data["percent"] < 100:
        return (
            _("At 100%% nothing new starts. Ask an admin in time if you need more before %(date)s.") % facts
        )
    minutes = data["grace_minutes"]
    return ngettext(
        "Nothing new starts before %(date)s. What runs stops %(minutes)s minute after all was spent; files are kept. "
        "An admin can add hours.",
        "Nothing new starts before %(date)s. What runs stops %(minutes)s minutes after all was spent; files are kept. "
        "An admin can add hours.",
        minutes,
    ) % {**facts, "minutes": minutes}

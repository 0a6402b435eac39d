"""Report of the GPU-hours and the storage held over some days, for the page, the API and the CSV alike.

People see the sums of their tenants, and their own use. Owners and admins see every person in their tenants.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from django.db.models import Q
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from accounts.access import Actor, owned_tenants, visible_tenants
from accounts.errors import Refusal
from accounts.models import Tenant, User
from accounts.spreadsheets import line
from quotas.accounting.budgets import rounded
from quotas.accounting.hours import GPUHours, hours
from quotas.accounting.stored import gib_months
from quotas.accounting.used import used_hours
from quotas.models import Pool

GROUPS = ("tenant", "user", "pool", "day")
DEFAULT_DAYS = 30
MOST_DAYS = 366
COLUMNS = ("allocated_gpu_hours", "weighted_gpu_hours", "used_gpu_hours", "storage_gib_months")


@dataclass(frozen=True)
class Asked:
    """Parameters of a report. Days are whole days in UTC, both included."""

    first: date
    last: date
    group_by: str = "tenant"
    tenant: str = ""
    user: str = ""
    pool: str = ""

    @property
    def has_storage(self) -> bool:
        """Return True if storage is part of the report: it is kept in no pool, and goes by months."""
        return self.group_by in ("tenant", "user") and not self.pool

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]


@dataclass(frozen=True)
class Use:
    """What was held of GPUs, and of storage in GiB-months; None: storage is no part of the report."""

    gpus: GPUHours = field(default_factory=GPUHours)
    storage: Fraction | None = None

    def __add__(self, other: Use) -> Use:
        kept = [storage for storage in (self.storage, other.storage) if storage is not None]
        return Use(self.gpus + other.gpus, sum(kept, Fraction(0)) if kept else None)


@dataclass(frozen=True)
class Row:
    """`key` is a slug, a user name or a day; None: the sum of the people whom the actor may not see one by one."""

    key: str | None
    name: str
    amount: Use


@dataclass(frozen=True)
class Report:
    asked: Asked
    rows: list[Row]

    @property
    def total(self) -> Use:
        nothing = Use(storage=Fraction(0) if self.asked.has_storage else None)
        return sum((row.amount for row in self.rows), nothing)

    @property
    def most(self) -> Fraction:
        return max((row.amount.gpus.allocated for row in self.rows), default=Fraction(0))


# --- Parameters


def parse(params: Mapping[str, str], now: datetime) -> Asked:
    """Return the parameters; the default is the last thirty days. Raises a Refusal that names the wrong field."""
    today = now.astimezone(UTC).date()
    last = _day(params, "to") or today
    first = _day(params, "from") or last - min(timedelta(days=DEFAULT_DAYS - 1), last - date.min)
    if first > last:
        raise _refusal("from", _("It begins after its end."), _("Give a day that is not after “to”."))
    if (last - first).days >= MOST_DAYS:
        text = _("It is %(days)s days long.") % {"days": (last - first).days + 1}
        raise _refusal("from", text, _("Ask for %(days)s days at most.") % {"days": MOST_DAYS})
    group_by = params.get("group_by") or "tenant"
    if group_by not in GROUPS:
        text = _("“%(value)s” is not among these.") % {"value": group_by[:40]}
        raise _refusal("group_by", text, _("Choose one of: %(names)s.") % {"names": ", ".join(GROUPS)})
    narrowed = {name: params.get(name, "").replace("\0", "") for name in ("tenant", "user", "pool")}
    return Asked(first, last, group_by, **narrowed)


def _day(params: Mapping[str, str], name: str) -> date | None:
    """Return a day, or the UTC day of a timestamp; None if empty."""
    text = params.get(name, "").strip()
    if not text:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return date.fromisoformat(text)
        moment = parse_datetime(text.replace(" ", "+"))  # an unquoted + of a URL arrives as a space
        if moment is not None:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date()
    except (ValueError, OverflowError):
        pass
    raise _refusal(name, _("There is no such day."), _("Give it as in 2026-03-31."))


def _refusal(field: str, message: str, hint: str) -> Refusal:
    return Refusal("invalid", message, hint, fields={field: [message]})


# --- Rows


def read(actor: Actor, asked: Asked, now: datetime) -> Report:
    """Return a report, with at most nine queries."""
    what = _where(actor, asked), asked.first, asked.last, _columns(asked.group_by), now
    amounts, used = dict(hours(*what)), used_hours(*what)
    for key, busy in used.items():
        held = amounts.get(key, GPUHours())
        # The pool may cut its GPUs otherwise now than the ledger recorded: limit to what was held.
        amounts[key] = replace(held, used=min(busy, held.allocated))
    if not asked.has_storage:
        return _report(actor, asked, {key: Use(gpus) for key, gpus in amounts.items()})
    kept = gib_months(*what)
    found = {key: Use(amounts.get(key, GPUHours()), kept.get(key, Fraction(0))) for key in {*amounts, *kept}}
    return _report(actor, asked, found)


def held_by_day(actor: Actor, asked: Asked, now: datetime) -> Report:
    """Return the report by day, without busy hours."""
    amounts = hours(_where(actor, asked), asked.first, asked.last, _columns("day"), now)
    found = {key: Use(gpus) for key, gpus in amounts.items()}
    return _report(actor, replace(asked, group_by="day"), found)


def _report(actor: Actor, asked: Asked, amounts: Mapping[tuple[Any, ...], Use]) -> Report:
    named = _named(actor, asked.group_by, amounts)
    rows = [row for row in named if row.amount.gpus.allocated or row.amount.storage]
    if asked.group_by == "day":
        rows.sort(key=lambda row: row.key or "")
    else:  # most hours first, unnamed people last
        rows.sort(key=_order)
    return Report(asked, rows)


def _order(row: Row) -> tuple[bool, Fraction, Fraction, str]:
    return row.key is None, -row.amount.gpus.allocated, -(row.amount.storage or Fraction(0)), row.key or ""


def _columns(group_by: str) -> tuple[str, ...]:
    """Return columns to group by. Persons also need the tenant: the actor may see their use in some tenants only."""
    return {"day": ("day",), "user": ("user_id", "tenant_id")}.get(group_by, (f"{group_by}_id",))


def _where(actor: Actor, asked: Asked) -> Q:
    where = Q(tenant__in=visible_tenants(actor).order_by())
    if asked.tenant:
        where &= Q(tenant__slug=asked.tenant)
    if asked.pool:
        where &= Q(pool__slug=asked.pool)
    if asked.user:
        where &= Q(user__username=asked.user)
        where &= Q(user=actor.user) | Q(tenant__in=owned_tenants(actor).order_by())
    return where


def _named(actor: Actor, group_by: str, amounts: Mapping[tuple[Any, ...], Use]) -> list[Row]:
    if group_by == "day":
        return [Row(day.isoformat(), "", amount) for (day,), amount in amounts.items()]
    if group_by == "user":
        return _people(actor, amounts)
    rows = Tenant.objects.all() if group_by == "tenant" else Pool.objects.all()
    names = {pk: (slug, name) for pk, slug, name in rows.order_by().values_list("pk", "slug", "name")}
    return [Row(*names[pk], amount) for (pk,), amount in amounts.items()]


def _people(actor: Actor, amounts: Mapping[tuple[Any, ...], Use]) -> list[Row]:
    owned = set(owned_tenants(actor).order_by().values_list("pk", flat=True))
    merged: dict[Any, Use] = {}
    for (user, tenant), amount in amounts.items():
        key = user if tenant in owned or user == actor.user.pk else None
        merged[key] = merged.get(key, Use()) + amount
    people = User.objects.filter(pk__in=[key for key in merged if key]).in_bulk()
    return [
        Row(people[key].get_username(), people[key].get_full_name(), amount)
        if key
        else Row(None, _("other people"), amount)
        for key, amount in merged.items()
    ]


# --- For programs


def figures(amount: Use) -> dict[str, float | None]:
    """Return the columns. The used hours are None if nothing was measured, which is not zero."""
    gpus = amount.gpus
    found = (gpus.allocated, gpus.weighted, gpus.used, amount.storage)
    return {name: None if one is None else rounded(one) for name, one in zip(COLUMNS, found, strict=True)}


def as_json(report: Report) -> dict[str, Any]:
    asked = report.asked
    return {
        "from": asked.first.isoformat(),
        "to": asked.last.isoformat(),
        "group_by": asked.group_by,
        "total": figures(report.total),
        "results": [{asked.group_by: row.key, **figures(row.amount)} for row in report.rows],
        "next": None,
    }


async def csv_parts(report: Report) -> AsyncIterator[list[str]]:
    yield [line((report.asked.group_by, *COLUMNS))]
    yield [
        line(
            (
                row.key or "",
                *("" if figure is None else f"{figure:.4f}" for figure in figures(row.amount).values()),
            )
        )
        for row in report.rows
    ]

"""Longest runtime of a tenant: the most that a launch may ask for, and what it gets if it asks for no lifetime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Invalid
from accounts.models import Tenant
from quotas.models import TenantLimit

from .spans import lifetime

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

# Of a lifetime: a year.
LONGEST_MINUTES = 365 * 24 * 60
WORKSPACES = gettext_lazy("Workspaces in %(tenant)s can run for %(span)s at most.")
JOBS = gettext_lazy("Jobs in %(tenant)s can run for %(span)s at most.")


def longest_of(tenant: Tenant) -> int | None:
    """Longest runtime in minutes; None: no limit."""
    limit = TenantLimit.of(tenant)
    return limit.longest_runtime_minutes if limit else None


def granted(tenant: Tenant, minutes: int | None, words: StrPromise = WORKSPACES) -> int | None:
    """Return the lifetime for a request of so many minutes (None: no lifetime). Raise Invalid above the longest."""
    longest = longest_of(tenant)
    if longest is not None and minutes is not None and minutes > longest:
        text = words % {"tenant": tenant.name, "span": lifetime(longest)}
        raise Invalid(
            "above_longest_runtime", text, _("Request less time."), fields={"max_runtime_minutes": [text]}
        )
    return longest if minutes is None else minutes


def at_most(tenant: Tenant, minutes: int | None) -> int | None:
    """Return the minutes, cut to the tenant's longest without a refusal: for copied settings."""
    given = [span for span in (minutes, longest_of(tenant)) if span is not None]
    return min(given, default=None)

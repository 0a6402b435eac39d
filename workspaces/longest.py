"""How long the runs of a tenant may go on: what a launch gets that asks for no lifetime, and the most it may ask."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from accounts.errors import Invalid
from accounts.models import Tenant
from quotas.models import TenantLimit

from . import story
from .models import Workspace

FIELD = "max_runtime_minutes"


def longest_of(tenant_id: UUID) -> int | None:
    """In minutes; None: no limit."""
    limits = TenantLimit.objects.filter(tenant=tenant_id)
    return limits.values_list("longest_runtime_minutes", flat=True).first()


def granted(tenant: Tenant, minutes: int | None) -> int | None:
    """The lifetime of what asks for so many minutes, None for none. Refused beyond the tenant's longest."""
    longest = longest_of(tenant.pk)
    if longest is None or minutes is None:
        return minutes if longest is None else longest
    if minutes > longest:
        text = _("What runs in %(tenant)s runs for %(span)s at most.") % {
            "tenant": tenant.name,
            "span": story.lifetime(longest),
        }
        raise Invalid("above_longest_runtime", text, _("Ask for less time."), fields={FIELD: [text]})
    return minutes


def at_most(tenant_id: UUID, minutes: int | None) -> int | None:
    """The same without a word: for settings that were copied."""
    given = [span for span in (minutes, longest_of(tenant_id)) if span is not None]
    return min(given, default=None)


def fit(row: Workspace) -> None:
    """Its next run keeps to what its tenant may have by now. Inside `changing`."""
    minutes = at_most(row.tenant_id, row.max_runtime_minutes)
    if minutes is not None and minutes != row.max_runtime_minutes:
        row.max_runtime_minutes = minutes
        story.tell(row, "lifetime_capped", minutes=minutes)

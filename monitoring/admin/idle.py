"""Admin page of idle policies. After a save it says what the policy would have done in the last two weeks."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, Q
from django.http import HttpRequest
from django.template.defaultfilters import floatformat
from django.utils import timezone
from django.utils.translation import gettext_lazy, ngettext

from accounts.admin.recorded import RecordedPage
from monitoring.idle import report
from monitoring.models import IdlePolicy

# Of a save, in which the report is read.
MOST_SECONDS = 3.0


@admin.register(IdlePolicy)
class IdlePolicyPage(RecordedPage[IdlePolicy]):
    purpose = gettext_lazy(
        "When idle workspaces with GPUs are stopped. The most exact policy holds: of a tenant in a pool, of a "
        "tenant, of a pool, of all. Owners are warned before, and one click keeps a workspace. Files are kept. What "
        "is not known, as without the figures of an agent, never stops anything."
    )
    list_display = ("__str__", "is_active", "minutes", "warning_minutes", "night_minutes", "waiting_minutes")
    list_filter = ("is_active", "tenant", "pool")
    list_select_related = ("tenant", "pool")
    search_fields = ("tenant__slug", "tenant__name", "pool__slug", "pool__name")
    autocomplete_fields = ("tenant", "pool")
    fieldsets = (
        (None, {"fields": ("tenant", "pool", "is_active", "minutes", "warning_minutes")}),
        (gettext_lazy("What counts as busy"), {"fields": ("gpu_percent", "cpu_cores")}),
        (
            gettext_lazy("At night, and while others wait"),
            {"fields": ("night_minutes", "night_from", "night_until", "time_zone", "waiting_minutes")},
        ),
    )

    def save_model(self, request: HttpRequest, obj: IdlePolicy, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.is_active:
            self.message_user(request, effect_of(obj), messages.INFO)

    def public_address(self, obj: Model) -> str:
        return "/idle/"


def effect_of(policy: IdlePolicy) -> str:
    """Return what the policy, with those that are more exact, would have done where it holds."""
    where = Q() if policy.tenant_id is None else Q(tenant=policy.tenant_id)
    where &= Q() if policy.pool_id is None else Q(pool=policy.pool_id)
    total = report.read(where, timezone.now(), most_seconds=MOST_SECONDS).total
    text = ngettext(
        "In the last 14 days it would have stopped %(count)d run and freed %(hours)s GPU-hours.",
        "In the last 14 days it would have stopped %(count)d runs and freed %(hours)s GPU-hours.",
        total.stops,
    )
    return text % {"count": total.stops, "hours": floatformat(total.freed_gpu_hours, "-1g")}

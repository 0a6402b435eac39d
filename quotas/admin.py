"""Where admins set pools, flavors and quotas, with what is used right now beside every limit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, F, Q, QuerySet, Sum
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import audit
from accounts.access import Actor
from accounts.models import User
from quotas import admission, passes, reasons
from quotas.models import Claim, Flavor, Pool, Quota, TenantLimit
from quotas.scheduling import as_gpus

ADMITTED = Claim.State.ADMITTED


def actor_of(request: HttpRequest) -> Actor:
    assert isinstance(request.user, User)
    return Actor(request.user)


class Recorded(admin.ModelAdmin):  # type: ignore[type-arg]
    """Every change is in the audit trail, and whoever waits is looked at again."""

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        self._record(request, obj, "change" if change else "add", {"fields": form.changed_data})

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        for obj in formset.new_objects:
            self._record(request, obj, "add", {})
        for obj, fields in formset.changed_objects:
            self._record(request, obj, "change", {"fields": fields})
        for obj in formset.deleted_objects:
            self._record(request, obj, "delete", {})

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._record(request, obj, "delete", {})
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for obj in queryset:
            self._record(request, obj, "delete", {})
        super().delete_queryset(request, queryset)

    def _record(self, request: HttpRequest, obj: Any, verb: str, data: dict[str, Any]) -> None:
        action = f"{obj._meta.model_name}.{verb}"
        tenant = getattr(obj, "tenant", None)
        audit.record(actor_of(request), action, target=obj, tenant=tenant, data={"name": str(obj), **data})
        passes.want_everywhere()


class FlavorInline(admin.TabularInline):  # type: ignore[type-arg]
    model = Flavor
    extra = 0
    fields = ("slug", "name", "units", "cpu_millicores", "memory_mib")


class QuotaInline(admin.TabularInline):  # type: ignore[type-arg]
    model = Quota
    extra = 0
    fields = ("tenant", "nominal_gpus", "borrowing_limit_gpus")


@admin.register(Pool)
class PoolAdmin(Recorded):
    list_display = ("slug", "name", "cluster", "sharing", "gpu_product", "gpus_in_use", "waiting")
    list_filter = ("cluster", "sharing")
    list_select_related = ("cluster",)
    search_fields = ("slug", "name", "gpu_product")
    inlines = (FlavorInline, QuotaInline)
    fieldsets = (
        (None, {"fields": ("slug", "name", "cluster")}),
        (_("Nodes"), {"fields": ("node_labels", "tolerations", "runtime_class")}),
        (_("Sharing"), {"fields": ("sharing", "resource_name", "units_per_gpu")}),
        (
            _("What people are told"),
            {"fields": ("gpu_product", "gpu_memory_mib", "unit_memory_mib", "compute_capability", "ecc")},
        ),
        (_("Overcommit"), {"fields": ("cpu_overcommit", "memory_overcommit")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pool]:
        rows: QuerySet[Pool] = super().get_queryset(request)
        return rows.annotate(
            units_in_use=Sum("claims__units", filter=Q(claims__state=ADMITTED), default=0),
            count_waiting=Count("claims", filter=Q(claims__state=Claim.State.WAITING)),
        )

    @admin.display(description=_("GPUs in use"))
    def gpus_in_use(self, pool: Any) -> str:
        return str(as_gpus(pool.units_in_use, pool.units_per_gpu)) if pool.has_gpus else "–"

    @admin.display(description=_("waiting"), ordering="count_waiting")
    def waiting(self, pool: Any) -> int:
        return int(pool.count_waiting)


@admin.register(Flavor)
class FlavorAdmin(Recorded):
    list_display = ("slug", "name", "pool", "units", "cpu_millicores", "memory_mib")
    list_filter = ("pool",)
    list_select_related = ("pool",)
    search_fields = ("slug", "name")


@admin.register(Quota)
class QuotaAdmin(Recorded):
    list_display = ("tenant", "pool", "used_gpus", "nominal_gpus", "borrowing_limit_gpus")
    list_editable = ("nominal_gpus", "borrowing_limit_gpus")
    list_filter = ("pool", "tenant")
    list_select_related = ("tenant", "pool")
    search_fields = ("tenant__slug", "tenant__name", "pool__slug")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        held = Q(tenant__claims__state=ADMITTED) & Q(tenant__claims__pool=F("pool"))
        rows: QuerySet[Quota] = super().get_queryset(request)
        return rows.annotate(used_units=Sum("tenant__claims__units", filter=held, default=0))

    @admin.display(description=_("in use"), ordering="used_units")
    def used_gpus(self, quota: Any) -> str:
        return str(as_gpus(quota.used_units, quota.pool.units_per_gpu))


@admin.register(TenantLimit)
class TenantLimitAdmin(Recorded):
    list_display = (
        "tenant",
        "used_cpu",
        "cpu_millicores",
        "used_memory",
        "memory_mib",
        "used_workspaces",
        "workspaces",
    )
    list_editable = ("cpu_millicores", "memory_mib", "workspaces")
    list_select_related = ("tenant",)
    search_fields = ("tenant__slug", "tenant__name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[TenantLimit]:
        held = Q(tenant__claims__state=ADMITTED)
        workspaces = held & Q(tenant__claims__holder_kind=Claim.Holder.WORKSPACE)
        rows: QuerySet[TenantLimit] = super().get_queryset(request)
        return rows.annotate(
            held_cpu=Sum("tenant__claims__cpu_millicores", filter=held, default=0),
            held_memory=Sum("tenant__claims__memory_mib", filter=held, default=0),
            held_workspaces=Count("tenant__claims", filter=workspaces),
        )

    @admin.display(description=_("CPU in use"), ordering="held_cpu")
    def used_cpu(self, limit: Any) -> int:
        return int(limit.held_cpu)

    @admin.display(description=_("memory in use"), ordering="held_memory")
    def used_memory(self, limit: Any) -> int:
        return int(limit.held_memory)

    @admin.display(description=_("workspaces now"), ordering="held_workspaces")
    def used_workspaces(self, limit: Any) -> int:
        return int(limit.held_workspaces)


@admin.register(Claim)
class ClaimAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """To look at. The one thing to do here is to end a claim whose pod nobody saw end."""

    list_display = (
        "created_at",
        "tenant",
        "user",
        "pool",
        "units",
        "state",
        "node",
        "reason_code",
        "end_unproven_since",
    )
    list_filter = ("state", ("end_unproven_since", admin.EmptyFieldListFilter), "pool", "tenant")
    list_select_related = ("tenant", "user", "pool")
    search_fields = ("id", "holder_id", "node", "user__username", "tenant__slug")
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
    actions = ("confirm_end",)

    @admin.display(description=_("why"), ordering="reason_code")
    def reason(self, claim: Claim) -> str:
        return (
            reasons.sentence(claim.reason_code, claim.reason_data)
            if claim.state == Claim.State.WAITING
            else ""
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Claim | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Claim | None = None) -> bool:
        return False

    @admin.action(description=_("Confirm that its pod has ended"), permissions=["view"])
    def confirm_end(self, request: HttpRequest, queryset: QuerySet[Claim]) -> None:
        flagged = [claim for claim in queryset if claim.end_unproven_since and claim.state == ADMITTED]
        ended = sum(admission.confirm_end(actor_of(request), claim) for claim in flagged)
        if ended:
            text = ngettext("%(count)d claim was ended.", "%(count)d claims were ended.", ended) % {
                "count": ended
            }
            self.message_user(request, text)
        if ended < queryset.count():
            self.message_user(
                request,
                _(
                    "Claims whose pod was not lost from sight were left as they are: stop their workspace instead."
                ),
                messages.WARNING,
            )

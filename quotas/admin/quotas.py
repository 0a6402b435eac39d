"""Admin pages of tenants' quotas in pools, and of their limits over all pools."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.fields import OwnFields
from accounts.admin.labels import LabelledInlineRows
from accounts.admin.meters import meter
from quotas.admin.shared import ConfirmsLowering, share_meter
from quotas.allowed.overuse import cores, gib
from quotas.allowed.storage import storage_of
from quotas.models import Claim, Quota, TenantLimit, of_all_members
from quotas.scheduling import as_gpus

ADMITTED = Q(state=Claim.State.ADMITTED)


def held(amount: Any, which: Q = ADMITTED, **where: Any) -> Coalesce:
    """Aggregate the claims of a row's tenant: the admitted ones, or `which`."""
    claims = Claim.objects.filter(which, tenant=OuterRef("tenant"), **where)
    return Coalesce(Subquery(claims.order_by().values("tenant").annotate(held=amount).values("held")), 0)


class QuotaInline(OwnFields, admin.TabularInline[Quota, Any]):
    model = Quota
    formset = LabelledInlineRows
    extra = 0
    fields = ("tenant", "pool", "nominal_gpus", "borrowing_limit_gpus", "weight")
    autocomplete_fields = ("tenant", "pool")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        return super().get_queryset(request).select_related("tenant", "pool")


class TenantLimitForm(forms.ModelForm[TenantLimit]):
    class Meta:
        help_texts: ClassVar = dict.fromkeys(
            ("cpu_millicores", "memory_mib"), gettext_lazy("Empty: no limit.")
        )


class TenantLimitInline(OwnFields, admin.StackedInline[TenantLimit, Any]):
    model = TenantLimit
    form = TenantLimitForm
    formset = LabelledInlineRows
    extra = 0
    verbose_name_plural = gettext_lazy("limit over all pools")


@admin.register(Quota)
class QuotaPage(ConfirmsLowering[Quota]):
    purpose = gettext_lazy(
        "How many GPUs of each pool a tenant can use at once. Raising it lets waiting requests start; "
        "lowering it stops nothing."
    )
    list_display = ("name", "in_use", "nominal_gpus", "borrowing_limit_gpus", "weight", "waits")
    list_editable = ("nominal_gpus", "borrowing_limit_gpus", "weight")
    list_filter = ("pool", "tenant")
    list_select_related = ("tenant", "pool")
    search_fields = ("tenant__slug", "tenant__name", "pool__slug", "pool__name")
    autocomplete_fields = ("tenant", "pool")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        rows: QuerySet[Quota] = super().get_queryset(request)
        waiting = Q(state=Claim.State.WAITING)
        return rows.annotate(
            used_units=held(Sum(of_all_members("units")), pool=OuterRef("pool")),
            asked_units=held(Sum(of_all_members("units")), waiting, pool=OuterRef("pool")),
        )

    @admin.display(description=gettext_lazy("quota"), ordering="tenant__slug")
    def name(self, quota: Quota) -> str:
        return str(quota)

    @admin.display(description=gettext_lazy("in use"), ordering="used_units")
    def in_use(self, quota: Any) -> SafeString | str:
        if not quota.pool.has_gpus:
            return _("no GPUs here")
        return share_meter(quota, quota.used_units)

    @admin.display(description=gettext_lazy("GPUs waited for"), ordering="asked_units")
    def waits(self, quota: Any) -> SafeString | str:
        if not quota.asked_units:
            return "–"
        which = {"state__exact": Claim.State.WAITING, "pool__id__exact": quota.pool_id,
                 "tenant__id__exact": quota.tenant_id}  # fmt: skip
        gpus = floatformat(as_gpus(quota.asked_units, quota.pool.units_per_gpu), "-2")
        return format_html(
            '<a href="{}?{}">{}</a>', reverse("admin:quotas_claim_changelist"), urlencode(which), gpus
        )


@admin.register(TenantLimit)
class TenantLimitPage(ConfirmsLowering[TenantLimit]):
    purpose = gettext_lazy(
        "What a tenant can use in all pools together. Empty: no limit. A limit below current use stops nothing."
    )
    list_display = (
        "tenant", "used_cpu", "cpu_millicores", "used_memory", "memory_mib", "used_storage", "storage_mib",
        "used_homes", "homes_mib", "used_disks", "disks_mib", "used_datasets", "datasets_mib", "used_workspaces",
        "workspaces", "longest_runtime_minutes", "person_gpus", "person_workspaces", "person_storage_mib",
    )  # fmt: skip
    list_editable = (
        "cpu_millicores", "memory_mib", "storage_mib", "homes_mib", "disks_mib", "datasets_mib", "workspaces",
        "longest_runtime_minutes", "person_gpus", "person_workspaces", "person_storage_mib",
    )  # fmt: skip
    form = TenantLimitForm
    list_select_related = ("tenant",)
    search_fields = ("tenant__slug", "tenant__name")
    autocomplete_fields = ("tenant",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TenantLimit]:
        rows: QuerySet[TenantLimit] = super().get_queryset(request)
        return rows.annotate(
            held_cpu=held(Sum(of_all_members("cpu_millicores"))),
            held_memory=held(Sum(of_all_members("memory_mib"))),
            held_workspaces=held(Count("pk"), holder_kind=Claim.Holder.WORKSPACE),
        )

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        storage = storage_of({limit.tenant_id for limit in found.result_list})
        for limit in found.result_list:
            limit.stored = storage[limit.tenant_id]
        return found

    @admin.display(description=gettext_lazy("CPU in use"), ordering="held_cpu")
    def used_cpu(self, limit: Any) -> SafeString:
        used, most = cores(limit.held_cpu) or 0, cores(limit.cpu_millicores)
        return amount_meter(used, most, _("%(used)s cores"), _("%(used)s of %(limit)s cores"))

    @admin.display(description=gettext_lazy("memory in use"), ordering="held_memory")
    def used_memory(self, limit: Any) -> SafeString:
        return gib_meter(limit.held_memory, limit.memory_mib)

    @admin.display(description=gettext_lazy("storage in use"))
    def used_storage(self, limit: Any) -> SafeString:
        return gib_meter(limit.stored["storage_mib"], limit.storage_mib)

    @admin.display(description=gettext_lazy("homes in use"))
    def used_homes(self, limit: Any) -> SafeString:
        return gib_meter(limit.stored["homes_mib"], limit.homes_mib)

    @admin.display(description=gettext_lazy("local disks in use"))
    def used_disks(self, limit: Any) -> SafeString:
        return gib_meter(limit.stored["disks_mib"], limit.disks_mib)

    @admin.display(description=gettext_lazy("datasets in use"))
    def used_datasets(self, limit: Any) -> SafeString:
        return gib_meter(limit.stored["datasets_mib"], limit.datasets_mib)

    @admin.display(description=gettext_lazy("workspaces now"), ordering="held_workspaces")
    def used_workspaces(self, limit: Any) -> SafeString:
        used, most = limit.held_workspaces, limit.workspaces
        words = _("%(used)s of %(limit)s") % {"used": used, "limit": most} if most is not None else str(used)
        return meter(used, most, words)


def gib_meter(used_mib: int, most_mib: int | None) -> SafeString:
    used, most = gib(used_mib) or 0, gib(most_mib)
    return amount_meter(used, most, _("%(used)s GiB"), _("%(used)s of %(limit)s GiB"))


def amount_meter(used: float, most: float | None, without_limit: str, within_limit: str) -> SafeString:
    words = without_limit if most is None else within_limit
    return meter(used, most, words % {"used": f"{used:g}", "limit": f"{most or 0:g}"})

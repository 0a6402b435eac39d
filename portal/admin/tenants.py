"""Admin pages of tenants: their members, what they may use, and what they use now."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.fields import OwnFields
from accounts.admin.labels import LabelledInlineRows
from accounts.admin.meters import meter
from accounts.models import Membership, Tenant
from accounts.rest.actors import actor_of
from portal.admin import members as membership_rows
from portal.admin.members import MembershipInline
from quotas.admin.quotas import QuotaInline, TenantLimitInline
from quotas.admin.shared import SHARE_MODELS, ConfirmsLowering
from quotas.allowed.usage import held_units
from quotas.models import Claim, TenantLimit
from workloads.logs.models import LogLimit


class LogLimitInline(OwnFields, admin.StackedInline[LogLimit, Any]):
    model = LogLimit
    formset = LabelledInlineRows
    extra = 0
    verbose_name_plural = gettext_lazy("retention of logs")


@admin.register(Tenant)
class TenantPage(ConfirmsLowering[Tenant]):
    purpose = gettext_lazy(
        "Teams and projects: their people, their quota in every pool, and their own namespace in each cluster."
    )
    list_display = ("name", "slug", "people", "gpus", "running", "waiting", "created_at")
    search_fields = ("name", "slug")
    date_hierarchy = "created_at"
    inlines = (MembershipInline, QuotaInline, TenantLimitInline, LogLimitInline)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        tenants: QuerySet[Tenant] = super().get_queryset(request)
        state = Claim.State
        limit = TenantLimit.objects.filter(tenant=OuterRef("pk")).values("workspaces")
        return tenants.annotate(
            count_people=counted(Membership.objects.filter(user__service_of=None)),
            count_running=counted(Claim.objects.filter(state=state.ADMITTED)),
            count_workspaces=counted(
                Claim.objects.filter(state=state.ADMITTED, holder_kind=Claim.Holder.WORKSPACE)
            ),
            count_waiting=counted(Claim.objects.filter(state=state.WAITING)),
            limit_workspaces=Subquery(limit),
        ).prefetch_related("quotas__pool")

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Add what this page's tenants hold of each pool, with one query for all."""
        found = super().get_changelist_instance(request)
        held = held_units({tenant.pk for tenant in found.result_list})
        for tenant in found.result_list:
            quotas = [quota for quota in tenant.quotas.all() if quota.pool.has_gpus]
            tenant.used_gpus = float(sum(q.pool.gpus(held[tenant.pk, q.pool_id]) for q in quotas))
            tenant.nominal_gpus = sum(q.nominal_gpus for q in quotas)
        return found

    @admin.display(description=gettext_lazy("people"), ordering="count_people")
    def people(self, tenant: Any) -> int:
        return int(tenant.count_people)

    @admin.display(description=gettext_lazy("GPUs in use"))
    def gpus(self, tenant: Any) -> SafeString:
        words = _("%(used)s of %(limit)s") % {"used": f"{tenant.used_gpus:g}", "limit": tenant.nominal_gpus}
        return meter(tenant.used_gpus, tenant.nominal_gpus, words)

    @admin.display(description=gettext_lazy("runs"), ordering="count_running")
    def running(self, tenant: Any) -> SafeString | int:
        if tenant.limit_workspaces is None:
            return int(tenant.count_running)
        used, limit = tenant.count_workspaces, tenant.limit_workspaces
        return meter(used, limit, _("%(used)s of %(limit)s") % {"used": used, "limit": limit})

    @admin.display(description=gettext_lazy("waits"), ordering="count_waiting")
    def waiting(self, tenant: Any) -> int:
        return int(tenant.count_waiting)

    fields = ("name", "slug")

    def get_form(
        self, request: HttpRequest, obj: Tenant | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        slug = _("Short, for addresses, scripts and the namespaces in clusters. It never changes.")
        return super().get_form(request, obj, change, help_texts={"slug": slug}, **kwargs)

    def get_prepopulated_fields(self, request: HttpRequest, obj: Tenant | None = None) -> dict[str, Any]:
        return {} if obj else {"slug": ("name",)}

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> tuple[str, ...]:
        return ("slug",) if obj else ()  # namespaces are named after it

    def about(self, obj: Tenant) -> Q:
        """Include changes of the tenant's members and quotas in its history."""
        within = Q(tenant=obj) & (
            Q(action__startswith="member.") | Q(target_kind__in=(*SHARE_MODELS, "loglimit"))
        )
        return super().about(obj) | within

    def why_kept(self, obj: Tenant) -> str:
        if obj.claims.exists() or obj.workspaces.exists() or obj.jobs.exists():
            return _(
                "It has or had workspaces or jobs: its namespaces and volumes are still in the clusters. Remove "
                "its people and set its quotas to 0 instead; then nothing new starts."
            )
        if obj.bookings.exists():
            return _(
                "It has booked GPUs, which stays on record. Remove its people and set its quotas to 0 instead."
            )
        return ""

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        if formset.model is Membership:
            membership_rows.save(actor_of(request), formset)
        else:
            super().save_formset(request, form, formset, change)


def counted(rows: QuerySet[Any]) -> Coalesce:
    """Number of these rows per tenant, as a subquery: several joins would multiply the counts."""
    of = rows.filter(tenant=OuterRef("pk")).order_by().values("tenant")
    return Coalesce(Subquery(of.annotate(count=Count("pk")).values("count")), 0)

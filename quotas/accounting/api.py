"""REST endpoints for usage and budgets."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import django_filters as filters
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext_noop
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import not_there
from accounts.models import Scope
from accounts.rest.actors import actor_of
from accounts.rest.csv import OffersCSV
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import checked
from quotas.accounting import budgets
from quotas.accounting import report as usage_report
from quotas.models import Budget

ASKED = [
    OpenApiParameter("from", OpenApiTypes.DATE, description="The first day, in UTC. Without: thirty days."),
    OpenApiParameter("to", OpenApiTypes.DATE, description="The last day, in UTC. Without: today."),
    OpenApiParameter("group_by", str, enum=usage_report.GROUPS, description="Without: tenant."),
    OpenApiParameter("tenant", str, description="Of this tenant alone, by its slug."),
    OpenApiParameter("user", str, description="Of this person alone: you, or whose tenant you own."),
    OpenApiParameter("pool", str, description="Of this pool alone, by its slug."),
    OpenApiParameter("format", str, enum=["json", "csv"]),
]


class UsageFigures(serializers.Serializer[Any]):
    allocated_gpu_hours = serializers.FloatField(help_text="Held; a slice of a GPU is its fraction.")
    weighted_gpu_hours = serializers.FloatField(help_text="The same by the pools' weights, as budgets count.")
    used_gpu_hours = serializers.FloatField(
        allow_null=True, help_text="While GPUs were busy, as far as it was measured. Null: it was not."
    )
    storage_gib_months = serializers.FloatField(
        allow_null=True,
        help_text="Size of volumes times the time for which they were kept; a month is 730 hours. "
        "Null by pool and by day, and for one pool alone.",
    )


class UsageRow(UsageFigures):
    """Usage with its group. `user` is null for the sum of the people whom you may not see one by one."""

    tenant = serializers.CharField(required=False)
    user = serializers.CharField(required=False, allow_null=True)
    pool = serializers.CharField(required=False)
    day = serializers.DateField(required=False)


class UsageShape(serializers.Serializer[Any]):
    to = serializers.DateField()
    group_by = serializers.ChoiceField(usage_report.GROUPS)
    total = UsageFigures()
    results = UsageRow(many=True)
    next = serializers.CharField(allow_null=True, help_text="Null: all of it is here.")

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateField(), **super().get_fields()}  # `from` is a keyword of Python


class Usage(OffersCSV):
    """GPU-hours of your tenants, and their storage."""

    @extend_schema(
        summary=gettext_noop("GPU-hours and storage used"),
        parameters=ASKED,
        responses=answers(
            {(200, "application/json"): UsageShape, (200, "text/csv"): OpenApiTypes.STR},  # type: ignore[dict-item]
            404,  # unknown `format`
        ),
    )
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        report = usage_report.read(actor_of(request), usage_report.parse(request.query_params, now), now)
        if self.is_csv:
            return self.as_csv("usage.csv", usage_report.csv_parts(report))
        return Response(usage_report.as_json(report))


class BudgetFilter(filters.FilterSet):  # type: ignore[misc]
    tenant = filters.CharFilter("tenant__slug")
    user = filters.CharFilter("user__username")


class BudgetShape(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    user = serializers.CharField(allow_null=True, help_text="Null: the tenant as a whole.")
    month = serializers.DateField(help_text="Its first day; months are of UTC.")
    gpu_hours = serializers.FloatField(help_text="Of every month.")
    added_gpu_hours = serializers.FloatField(help_text="By an admin, for this month.")
    limit_gpu_hours = serializers.FloatField(help_text="Both together.")
    spent_gpu_hours = serializers.FloatField(help_text="By the pools' weights.")
    is_spent = serializers.BooleanField(help_text="Nothing new that uses GPUs starts.")
    stops_at = serializers.DateTimeField(
        allow_null=True, help_text="Once it is spent: when what still runs stops."
    )


class BudgetList(ListAPIView[Budget]):
    """Budgets of GPU-hours this month: your tenants' and your own. Owners also see their people's."""

    serializer_class = BudgetShape
    filterset_class = BudgetFilter
    search_fields = ["tenant__slug", "tenant__name", "user__username"]
    keyset = ("tenant_id", "id")

    def get_queryset(self) -> QuerySet[Budget]:
        if getattr(self, "swagger_fake_view", False):
            return Budget.objects.none()
        return budgets.visible(actor_of(self.request))

    @extend_schema(responses=answers({200: BudgetShape(many=True)}))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        found = budgets.standings(page or [], timezone.now())
        return self.get_paginated_response(BudgetShape([shown(one) for one in found], many=True).data)


class AddedHours(StrictSerializer):
    tenant = serializers.CharField()
    user = serializers.CharField(
        required=False, allow_null=True, help_text="Without: the budget of the tenant as a whole."
    )
    add_gpu_hours = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=Decimal("0.01"), coerce_to_string=False
    )


class BudgetHours(APIView):
    """Hours for one month, beside those of every month."""

    write_scope = Scope.ADMIN

    @extend_schema(
        operation_id="budget_hours_add",
        summary=gettext_noop("Add hours to this month's budget (admins)"),
        request=AddedHours,
        responses=answers({200: BudgetShape}, 404, 422),
    )
    def post(self, request: Request) -> Response:
        actor, asked = actor_of(request), checked(AddedHours, request)
        actor.require_admin()
        user = {"user__username": asked["user"]} if asked.get("user") is not None else {"user": None}
        budget = budgets.visible(actor).filter(tenant__slug=asked["tenant"], **user).first()
        if budget is None:
            raise not_there()
        budgets.add_hours(actor, budget, asked["add_gpu_hours"])
        [standing] = budgets.standings([budget], timezone.now())
        return Response(BudgetShape(shown(standing)).data)


def shown(standing: budgets.Standing) -> dict[str, Any]:
    budget = standing.budget
    return {
        "tenant": budget.tenant.slug,
        "user": budget.user and budget.user.get_username(),
        "month": standing.row.month,
        "gpu_hours": budget.gpu_hours,
        "added_gpu_hours": standing.row.added_gpu_hours,
        "limit_gpu_hours": budgets.rounded(standing.limit),
        "spent_gpu_hours": budgets.rounded(standing.spent),
        "is_spent": standing.is_spent,
        "stops_at": standing.ends_at,
    }

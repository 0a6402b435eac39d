"""The audit trail over REST: JSON in pages, or CSV in one answer."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_noop
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from accounts.models import AuditEntry
from accounts.rest import shapes
from accounts.rest.actors import actor_of
from accounts.rest.csv import OffersCSV
from accounts.rest.schema import answers
from accounts.rest.views import ListView
from accounts.trail import trail
from accounts.trail.trail_export import csv_parts


class AuditView(OffersCSV, ListView):
    serializer_class = shapes.AuditShape
    queryset = AuditEntry.objects.none()
    filter_backends = (DjangoFilterBackend,)
    filterset_class = trail.TrailFilter
    keyset = trail.KEYSET

    def get_queryset(self) -> QuerySet[AuditEntry]:
        return trail.visible(actor_of(self.request))

    @extend_schema(
        summary=gettext_noop("Changes and refused attempts (owners: their tenants; admins: all)"),
        parameters=[
            OpenApiParameter(
                "format", str, enum=["json", "csv"], description="csv: all that is found, without pages."
            )
        ],
        responses=answers(
            {
                (200, "application/json"): shapes.AuditShape(many=True),  # type: ignore[dict-item]
                (200, "text/csv"): OpenApiTypes.STR,  # type: ignore[dict-item]
            },
            404,  # for an unknown format
        ),
    )
    def get(self, request: Request) -> HttpResponseBase:
        if not self.is_csv:
            return self.page()
        return self.as_csv("audit.csv", csv_parts(self.filter_queryset(self.get_queryset())))

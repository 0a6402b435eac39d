"""REST: the report on idle GPUs."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_noop
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.views import Query
from monitoring.idle import report
from monitoring.idle.report import DAYS, MOST_DAYS, Report, Waste
from monitoring.models.idle import LONGEST_MINUTES
from workloads.figures import moment

MOST_ROWS = 500


class ReportQuery(Query):
    days = serializers.IntegerField(
        default=DAYS, min_value=1, max_value=MOST_DAYS, help_text="How far back; 14 unless said."
    )
    minutes = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=LONGEST_MINUTES,
        help_text="Idle time after which a run without a policy counts as stopped; 120 unless said.",
    )


class WouldStopShape(serializers.Serializer[Any]):
    workspace = serializers.UUIDField()
    name = serializers.CharField()
    run = serializers.UUIDField()
    tenant = serializers.CharField()
    owner = serializers.CharField()
    pool = serializers.CharField()
    gpus = serializers.FloatField()
    idle_since = serializers.DateTimeField()
    would_stop_at = serializers.DateTimeField()
    idle_until = serializers.DateTimeField()
    freed_gpu_hours = serializers.FloatField()


class WasteShape(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    owner = serializers.CharField(required=False)
    held_gpu_hours = serializers.FloatField()
    freed_gpu_hours = serializers.FloatField()
    stops = serializers.IntegerField()


class IdleReportShape(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    assumed_minutes = serializers.IntegerField(
        allow_null=True, help_text="For runs without a policy; null: each has one."
    )
    truncated = serializers.BooleanField(help_text="There were too many runs: the oldest are left out.")
    stops = serializers.IntegerField()
    held_gpu_hours = serializers.FloatField()
    freed_gpu_hours = serializers.FloatField()
    results = WouldStopShape(many=True)
    people = WasteShape(many=True)
    tenants = WasteShape(many=True)


class IdleReportView(APIView):
    @extend_schema(
        summary=gettext_noop("What idle reclaim would have stopped, and what that frees"),
        description=(
            "From the figures of GPUs and CPUs that are kept, for runs that you may see: all for admins, those of "
            "your tenants for owners, else your own. Kernels and programs that ran without them are not in the "
            f"figures. The {MOST_ROWS} stops that free most are listed."
        ),
        parameters=[ReportQuery],
        responses=answers({200: IdleReportShape}),
    )
    def get(self, request: Request) -> Response:
        asked = ReportQuery.of(request)
        where = report.seen_by(actor_of(request))
        return Response(
            report_json(report.read(where, timezone.now(), days=asked["days"], minutes=asked.get("minutes")))
        )


def report_json(found: Report) -> dict[str, Any]:
    shown = found.stops[:MOST_ROWS]
    names = report.names_of(shown)
    return {
        "since": moment(found.since),
        "until": moment(found.until),
        "assumed_minutes": found.assumed_minutes,
        "truncated": found.is_cut,
        **_waste(found.total),
        "results": [
            {
                "workspace": str(stop.workspace),
                "name": names.get(stop.workspace, ""),
                "run": str(stop.run),
                "tenant": stop.tenant,
                "owner": stop.user,
                "pool": stop.pool,
                "gpus": round(stop.gpus, 4),
                "idle_since": moment(stop.since),
                "would_stop_at": moment(stop.at),
                "idle_until": moment(stop.until),
                "freed_gpu_hours": round(stop.freed_gpu_hours, 2),
            }
            for stop in shown
        ],
        "people": [
            {"tenant": one.tenant, "owner": one.user, **_waste(one)} for one in found.people[:MOST_ROWS]
        ],
        "tenants": [{"tenant": one.tenant, **_waste(one)} for one in found.tenants[:MOST_ROWS]],
    }


def _waste(one: Waste) -> dict[str, Any]:
    return {
        "stops": one.stops,
        "held_gpu_hours": round(one.held_gpu_hours, 2),
        "freed_gpu_hours": round(one.freed_gpu_hours, 2),
    }

"""REST API for the figures of a workspace."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_noop
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from monitoring.figures.series import DEFAULT, of_workspace
from monitoring.following import figures_json
from workspaces import access


class SeriesShape(serializers.Serializer[Any]):
    name = serializers.CharField(
        help_text="gpu_utilization, gpu_memory_used, gpu_power, gpu_temperature (one of each for each GPU), cpu, "
        "memory_used."
    )
    unit = serializers.CharField(help_text="%, MiB, W, °C or cores.")
    label = serializers.CharField(allow_blank=True, help_text="Which GPU; empty: the workspace.")  # type: ignore[assignment]
    points = serializers.ListField(
        child=serializers.ListField(
            child=serializers.FloatField(allow_null=True), min_length=2, max_length=2
        ),
        help_text="Seconds since 1970, and the figure; null where nothing was told.",
    )


class MetricsShape(serializers.Serializer[Any]):
    window = serializers.CharField()
    step_seconds = serializers.IntegerField()
    series = SeriesShape(many=True)
    message = serializers.CharField(
        allow_blank=True, help_text="What there is to know of the figures, or why there are none."
    )
    is_simulated = serializers.BooleanField(help_text="Of a trial's cluster, which plays its GPUs.")


class MetricsView(APIView):
    @extend_schema(
        summary=gettext_noop("Usage of a workspace"),
        description="All series have the same times, a step apart. Of a shared GPU the figures are the whole GPU's.",
        parameters=[
            OpenApiParameter(
                "window",
                str,
                description="How far back: minutes, hours or days, as 30m, 1h or 7d, 30d at most; or run: since "
                "the present run began. 1h unless said.",
            )
        ],
        responses=answers({200: MetricsShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        workspace = access.get(actor_of(request), id)
        window = request.query_params.get("window", DEFAULT)
        return Response(figures_json(of_workspace(workspace, window), window))

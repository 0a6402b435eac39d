"""REST addresses of monitoring."""

from django.urls import include, path

from . import api
from .intake import api as intake

urlpatterns = [
    path("", include("monitoring.alerts.urls_api")),
    path("agent/samples/", intake.SamplesView.as_view(), name="agent-samples"),
    path("agent/health/", intake.HealthView.as_view(), name="agent-health"),
    path("workspaces/<uuid:id>/metrics/", api.MetricsView.as_view(), name="workspace-metrics"),
]

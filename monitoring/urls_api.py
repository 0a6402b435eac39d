"""REST addresses of monitoring."""

from django.urls import path

from . import api
from .idle import api as idle
from .intake import api as intake

urlpatterns = [
    path("agent/samples/", intake.SamplesView.as_view(), name="agent-samples"),
    path("agent/health/", intake.HealthView.as_view(), name="agent-health"),
    path("idle/report/", idle.IdleReportView.as_view(), name="idle-report"),
    path("workspaces/<uuid:id>/metrics/", api.MetricsView.as_view(), name="workspace-metrics"),
]

"""REST addresses of monitoring."""

from django.urls import include, path

from . import api
from .idle import api as idle
from .intake import api as intake
from .post_mortems import api as post_mortems

urlpatterns = [
    path("", include("monitoring.alerts.urls_api")),
    path("agent/samples/", intake.SamplesView.as_view(), name="agent-samples"),
    path("agent/health/", intake.HealthView.as_view(), name="agent-health"),
    path("idle/report/", idle.IdleReportView.as_view(), name="idle-report"),
    path("workspaces/<uuid:id>/metrics/", api.MetricsView.as_view(), name="workspace-metrics"),
    path("post-mortems/", post_mortems.PostMortemsView.as_view(), name="post-mortems"),
    path("post-mortems/<uuid:id>/", post_mortems.PostMortemView.as_view(), name="post-mortem"),
    path(
        "post-mortems/<uuid:id>/notes/", post_mortems.PostMortemNotesView.as_view(), name="post-mortem-notes"
    ),
]

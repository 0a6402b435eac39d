"""REST addresses of monitoring."""

from django.urls import include, path

from . import api
from .drift import api as drift
from .health import api as nodes
from .idle import api as idle
from .intake import api as intake
from .intake import api_tokens as tokens
from .post_mortems import api as post_mortems

urlpatterns = [
    path("", include("monitoring.alerts.urls_api")),
    path("nodes/<str:name>/cordon/", nodes.CordonView.as_view(), name="node-cordon"),
    path("nodes/<str:name>/uncordon/", nodes.UncordonView.as_view(), name="node-uncordon"),
    path("nodes/<str:name>/drain/", nodes.DrainView.as_view(), name="node-drain"),
    path("drift/", drift.DriftView.as_view(), name="drift"),
    path("drift/look/", drift.LookView.as_view(), name="drift-look"),
    path("drift/<uuid:id>/adopt/", drift.AdoptView.as_view(), name="drift-adopt"),
    path("drift/<uuid:id>/recreate/", drift.RecreateView.as_view(), name="drift-recreate"),
    path("drift/<uuid:id>/delete/", drift.DeleteView.as_view(), name="drift-delete"),
    path("agent-tokens/", tokens.AgentTokensView.as_view(), name="agent-tokens"),
    path("agent-tokens/<uuid:id>/", tokens.AgentTokenView.as_view(), name="agent-token"),
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

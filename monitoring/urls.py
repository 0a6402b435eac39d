"""Page addresses."""

from django.urls import include, path

from . import views
from .idle import views as idle
from .post_mortems import views as post_mortems

urlpatterns = [
    path("", include("monitoring.alerts.pages.urls")),
    path("idle/", idle.idle, name="idle"),
    path("workspaces/sparklines/", views.sparklines, name="workspace-sparklines"),
    path("workspaces/<uuid:id>/metrics/", views.metrics, name="workspace-metrics"),
    path("workspaces/<uuid:id>/gauges/", views.gauges, name="workspace-gauges"),
    path("post-mortems/", post_mortems.records, name="post-mortems"),
    path("post-mortems/<uuid:id>/", post_mortems.record, name="post-mortem"),
]

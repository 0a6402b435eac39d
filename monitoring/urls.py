"""Page addresses."""

from django.urls import include, path

from . import views

urlpatterns = [
    path("", include("monitoring.alerts.urls")),
    path("workspaces/sparklines/", views.sparklines, name="workspace-sparklines"),
    path("workspaces/<uuid:id>/metrics/", views.metrics, name="workspace-metrics"),
]

"""Page addresses."""

from django.urls import include, path

from . import views
from .idle import views as idle

urlpatterns = [
    path("", include("monitoring.alerts.urls")),
    path("idle/", idle.idle, name="idle"),
    path("workspaces/sparklines/", views.sparklines, name="workspace-sparklines"),
    path("workspaces/<uuid:id>/metrics/", views.metrics, name="workspace-metrics"),
]

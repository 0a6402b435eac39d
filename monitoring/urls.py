"""Page addresses."""

from django.urls import path

from . import views

urlpatterns = [
    path("workspaces/sparklines/", views.sparklines, name="workspace-sparklines"),
    path("workspaces/<uuid:id>/metrics/", views.metrics, name="workspace-metrics"),
]

"""Websocket addresses."""

from django.urls import path

from . import consumers
from .alerts import consumers as of_alerts

websocket_urlpatterns = [
    path("ws/alerts/", of_alerts.Alerts.as_asgi()),
    path("ws/workspaces/<uuid:id>/metrics/", consumers.WorkspaceFigures.as_asgi()),
]

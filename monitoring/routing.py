"""Websocket addresses."""

from django.urls import path

from . import consumers

websocket_urlpatterns = [
    path("ws/workspaces/<uuid:id>/metrics/", consumers.WorkspaceFigures.as_asgi()),
]

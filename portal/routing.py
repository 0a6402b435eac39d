"""Addresses of all websockets."""

from django.urls import re_path

from monitoring import routing as of_monitoring
from workspaces.live import routing as of_workspaces
from workspaces.live.consumers import Nowhere

websocket_urlpatterns = [
    *of_monitoring.websocket_urlpatterns,
    *of_workspaces.websocket_urlpatterns,
    re_path("", Nowhere.as_asgi()),
]

"""Addresses of all websockets."""

from django.urls import re_path

from jobs.live import routing as of_jobs
from monitoring import routing as of_monitoring
from workloads.live.sockets import Nowhere
from workspaces.live import routing as of_workspaces

websocket_urlpatterns = [
    *of_monitoring.websocket_urlpatterns,
    *of_workspaces.websocket_urlpatterns,
    *of_jobs.websocket_urlpatterns,
    re_path("", Nowhere.as_asgi()),
]

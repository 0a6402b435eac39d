"""Websocket addresses."""

from django.urls import path

from workloads.live import sockets

from . import consumers, notices_live

websocket_urlpatterns = [
    path("ws/workspaces/", consumers.WorkspaceList.as_asgi()),
    path("ws/workspaces/<uuid:id>/", consumers.OneWorkspace.as_asgi()),
    path("ws/workspaces/<uuid:id>/logs/", consumers.WorkspaceLog.as_asgi()),
    path("ws/notices/", notices_live.Notices.as_asgi()),
    path("ws/gpus/", sockets.Pools.as_asgi()),
]

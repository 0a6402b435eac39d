"""Websocket addresses."""

from django.urls import path

from . import consumers, notices_live

websocket_urlpatterns = [
    path("ws/workspaces/", consumers.WorkspaceList.as_asgi()),
    path("ws/workspaces/<uuid:workspace_id>/", consumers.OneWorkspace.as_asgi()),
    path("ws/workspaces/<uuid:workspace_id>/logs/", consumers.WorkspaceLog.as_asgi()),
    path("ws/notices/", notices_live.Notices.as_asgi()),
    path("ws/gpus/", consumers.Pools.as_asgi()),
]

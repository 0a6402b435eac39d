"""Websocket addresses."""

from django.urls import path

from . import consumers

websocket_urlpatterns = [
    path("ws/jobs/", consumers.JobList.as_asgi()),
    path("ws/jobs/<uuid:id>/", consumers.OneJob.as_asgi()),
    path("ws/jobs/<uuid:id>/logs/", consumers.JobLog.as_asgi()),
]

from django.urls import path

from . import rest

urlpatterns = [
    path("nodes/", rest.NodesView.as_view(), name="nodes"),
]

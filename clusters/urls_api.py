from django.urls import path

from . import rest

urlpatterns = [
    path("clusters/", rest.ClustersView.as_view(), name="clusters"),
    path("clusters/<slug:slug>/prove/", rest.ProveView.as_view(), name="cluster-prove"),
    path("nodes/", rest.NodesView.as_view(), name="nodes"),
]
